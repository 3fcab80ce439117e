package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// FormatVersion is the version of the format, the only one that is written and read.
const FormatVersion = 1

// maxManifestBytes limits the manifest, which is read into memory: it has room for some 300,000
// shards.
const maxManifestBytes = 64 << 20

// errOtherManifest reports a manifest.json of another program.
var errOtherManifest = fmt.Errorf("%w: another program's, and no dataset's manifest", ErrCorrupt)

// Manifest is manifest.json, which describes a finished dataset.
type Manifest struct {
	Format    string           `json:"format"` // "dsload"
	Version   int              `json:"version"`
	Schema    Schema           `json:"schema"`
	Settings  json.RawMessage  `json:"settings"` // BuilderOptions.Settings
	Tokenizer TokenizerInfo    `json:"tokenizer"`
	Sources   []SourceInfo     `json:"sources"`
	Counters  map[string]int64 `json:"counters"`
	Dropped   map[string]int64 `json:"dropped,omitempty"` // documents that filters dropped, by option
	Splits    []SplitInfo      `json:"splits"`            // those with rows, in the order train, val
	Files     []FileInfo       `json:"files"`             // other files of the folder, without run.json
	Part      *PartInfo        `json:"part,omitempty"`
	Merged    *MergeInfo       `json:"merged,omitempty"`

	seal string // see Seal
}

// TokenizerInfo identifies the tokenizer that made the ids.
type TokenizerInfo struct {
	Name        string           `json:"name"`
	Fingerprint string           `json:"fingerprint"`
	VocabSize   int              `json:"vocab_size"`
	Special     map[string]int64 `json:"special"` // ids of special tokens by their role, such as "bos", "eos", "pad"
}

// SourceInfo is one input of the build, or one folder or glob of a build from very many files.
type SourceInfo struct {
	URI      string `json:"uri"`
	Files    int64  `json:"files,omitempty"` // of a folder or glob that stands for all its files; 0 for a single input
	Bytes    int64  `json:"bytes"`           // as read, before decompression, of all files; -1 if unknown
	Checksum string `json:"checksum"`        // "algorithm:hex"
	ETag     string `json:"etag,omitempty"`  // of a remote file, as sent by its server
	// Revision is the commit of the repository that it was read from.
	Revision string `json:"revision,omitempty"`
}

// SplitInfo describes the rows of a split.
type SplitInfo struct {
	Name        string `json:"name"`
	Examples    int64  `json:"examples"`
	Tokens      int64  `json:"tokens"`       // of input_ids
	LabelTokens int64  `json:"label_tokens"` // of labels
	MinLength   int64  `json:"min_length"`   // of input_ids
	MaxLength   int64  `json:"max_length"`   // of input_ids
	MaxLabels   int64  `json:"max_labels"`   // of labels
	// Lengths is the histogram of input_ids lengths: {lower bound of the bucket, rows, tokens},
	// ascending, without empty buckets. BucketBounds returns a bucket's upper bound.
	Lengths [][3]int64  `json:"lengths"`
	Shards  []ShardInfo `json:"shards"`
	// List, where set, stands for the shards of a split that has very many.
	List *ListInfo `json:"shard_list,omitempty"`
}

// ShardInfo describes a shard. The i-th of a split is the file Part{}.ShardName(split, i); those of a part
// or of a merged dataset are named by Part.ShardName, ascending.
type ShardInfo struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Tokens int64  `json:"tokens"` // of input_ids
	Bytes  int64  `json:"bytes"`
	BLAKE3 string `json:"blake3"` // hex
	// Footer is the BLAKE3 of everything after the last record batch, in hex. The footer holds the
	// checksum of every record batch, so it ties each of them to the manifest.
	Footer string `json:"footer"`
}

// FileInfo is a file that is not a shard.
type FileInfo struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	BLAKE3 string `json:"blake3"` // hex
}

// Split returns the split of that name, or nil if there is none.
func (m *Manifest) Split(name string) *SplitInfo {
	for i := range m.Splits {
		if m.Splits[i].Name == name {
			return &m.Splits[i]
		}
	}
	return nil
}

// File returns the file of a name that the dataset has besides its shards, nil for none.
func (m *Manifest) File(name string) *FileInfo {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

// encode returns the sealed bytes of manifest.json, with a line for each member and each shard.
func (m *Manifest) encode() ([]byte, error) {
	w := newSealedWriter()
	w.head(m)
	w.splits(m.Splits, func(s *SplitInfo) {
		w.fieldLines("shards", len(s.Shards), func(i int) any { return s.Shards[i] })
	})
	w.lines("files", len(m.Files), func(i int) any { return m.Files[i] })
	if m.Part != nil {
		w.member("part", m.Part)
	}
	if m.Merged != nil {
		w.member("merged", m.Merged)
	}
	return w.seal()
}

// head writes the members of a manifest before its splits.
func (w *sealedWriter) head(m *Manifest) {
	w.member("format", m.Format)
	w.member("version", m.Version)
	w.member("schema", m.Schema)
	w.member("settings", m.Settings)
	w.member("tokenizer", m.Tokenizer)
	w.lines("sources", len(m.Sources), func(i int) any { return m.Sources[i] })
	w.member("counters", m.Counters)
	if len(m.Dropped) > 0 {
		w.member("dropped", m.Dropped)
	}
}

// splits writes the splits of a manifest; shards writes the member with the shards of one that has no list.
func (w *sealedWriter) splits(splits []SplitInfo, shards func(s *SplitInfo)) {
	w.open("splits")
	for i := range splits {
		s := &splits[i]
		w.element(i == 0)
		w.field("name", s.Name)
		w.field("examples", s.Examples)
		w.field("tokens", s.Tokens)
		w.field("label_tokens", s.LabelTokens)
		w.field("min_length", s.MinLength)
		w.field("max_length", s.MaxLength)
		w.field("max_labels", s.MaxLabels)
		w.field("lengths", s.Lengths)
		if s.List != nil {
			w.lastField("shard_list", s.List)
		} else {
			shards(s)
		}
		w.endElement()
	}
	w.close()
}

// ReadManifest reads and checks the manifest of a folder. The error is ErrNotFound if there is
// none.
func ReadManifest(fsys FS, dir string) (*Manifest, error) {
	return ReadManifestFile(fsys, dir, ManifestName)
}

// ReadPartManifest reads and checks the manifest of a part. The error is ErrNotFound if the part is
// not finished.
func ReadPartManifest(fsys FS, dir string, number int) (*Manifest, error) {
	name := Part{Number: number, Of: MaxParts}.ManifestName()
	m, err := ReadManifestFile(fsys, dir, name)
	if err == nil && (m.Part == nil || m.Part.Number != number) {
		return nil, corrupt(Join(dir, name), -1, "not the manifest of part %d", number)
	}
	return m, err
}

// ReadManifestFile reads a manifest that has another name than its own.
func ReadManifestFile(fsys FS, dir, name string) (*Manifest, error) {
	path := Join(dir, name)
	data, err := readSmallFile(fsys, path, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		cause := error(ErrNotFound)
		if _, err := fsys.Stat(Join(dir, checkpointName)); err == nil {
			cause = ErrUnfinished
		}
		return nil, &FileError{File: path, Offset: -1, Row: -1, Cause: cause}
	}
	if err != nil {
		return nil, err
	}
	return parseManifest(path, data)
}

// parseManifest parses a manifest and checks everything that can be checked without the other
// files. file is for messages.
func parseManifest(file string, data []byte) (*Manifest, error) {
	// Check the version first: another format may seal its manifest in another way.
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err == nil && head.Format == "dsload" && head.Version != FormatVersion {
		return nil, &FileError{File: file, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w %d: this dsload reads version %d; build the dataset again, or read it with the "+
				"dsload that wrote it", ErrVersion, head.Version, FormatVersion)}
	}
	if head.Format != "dsload" && json.Valid(data) && !bytes.Contains(data, []byte(sealBefore)) {
		return nil, &FileError{File: file, Offset: -1, Row: -1, Cause: errOtherManifest}
	}
	if err := checkSeal(file, data); err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, &FileError{File: file, Offset: -1, Row: -1, Cause: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	if err := m.validate(); err != nil {
		return nil, &FileError{File: file, Offset: -1, Row: -1, Cause: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	m.seal = string(data[len(data)-len(sealAfter)-sealDigits : len(data)-len(sealAfter)])
	return m, nil
}

// Seal returns the checksum at the end of the manifest's file, 64 hexadecimal digits. It identifies
// the dataset's content, since the manifest holds the checksum of every other file. It is empty for
// a manifest that was not read from a file.
func (m *Manifest) Seal() string { return m.seal }

func (m *Manifest) validate() error {
	if m.Format != "dsload" || m.Version != FormatVersion {
		return fmt.Errorf("format %q version %d", m.Format, m.Version)
	}
	if err := m.Schema.validate(); err != nil {
		return err
	}
	for _, role := range sortedKeys(m.Tokenizer.Special) {
		if id := m.Tokenizer.Special[role]; id < 0 || id >= int64(m.Schema.VocabSize) {
			return fmt.Errorf("special token %q: id %d with a vocabulary of %d", role, id, m.Schema.VocabSize)
		}
	}
	if m.Splits == nil {
		return errors.New("no splits")
	}
	last := -1
	for i := range m.Splits {
		s := &m.Splits[i]
		n := splitIndex(s.Name)
		if n <= last {
			return fmt.Errorf("split %q unknown or out of order", s.Name)
		}
		last = n
		err := s.validate(m.partitions())
		if s.List != nil && err == nil {
			err = m.validateList(s)
		}
		if err != nil {
			return fmt.Errorf("split %s: %w", s.Name, err)
		}
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if !validExtraName(f.Name) || seen[f.Name] || f.Bytes < 0 || !validHash(f.BLAKE3) {
			return fmt.Errorf("file %q", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// partitions returns how many parts the shards may be of, 0 for a whole build.
func (m *Manifest) partitions() int {
	switch {
	case m.Part != nil:
		return m.Part.Of
	case m.Merged != nil:
		return m.Merged.Partitions
	}
	return 0
}

func (s *SplitInfo) validate(partitions int) error {
	if s.List != nil {
		return s.validateLengths()
	}
	if len(s.Shards) == 0 || partitions == 0 && len(s.Shards) > maxShardIndex+1 {
		return fmt.Errorf("%d shards", len(s.Shards))
	}
	var rows, tokens int64
	last := partName{part: -1}
	for i, sh := range s.Shards {
		switch {
		case partitions > 0 && !validPartName(s.Name, sh.Name, partitions, &last),
			partitions == 0 && sh.Name != shardName(s.Name, i):
			return fmt.Errorf("shard %d is named %q", i, sh.Name)
		case sh.Rows < 1 || sh.Rows > sh.Bytes || sh.Tokens < sh.Rows ||
			sh.Tokens > sh.Bytes, sh.Bytes > 2*maxShardBytes:
			return fmt.Errorf("shard %s: %d rows, %d tokens, %d bytes", sh.Name, sh.Rows, sh.Tokens, sh.Bytes)
		case !validHash(sh.BLAKE3):
			return fmt.Errorf("shard %s: checksum %q", sh.Name, sh.BLAKE3)
		case !validHash(sh.Footer):
			return fmt.Errorf("shard %s: checksum %q of its footer", sh.Name, sh.Footer)
		}
		rows += sh.Rows // no overflow: 100,000 shards of less than 2^37 bytes
		tokens += sh.Tokens
	}
	if rows != s.Examples || tokens != s.Tokens {
		return fmt.Errorf("%d examples and %d tokens, its shards have %d and %d", s.Examples, s.Tokens, rows, tokens)
	}
	return s.validateLengths()
}

func (s *SplitInfo) validateLengths() error {
	if s.MinLength < 1 || s.MaxLength < s.MinLength || s.MaxLength > maxRowTokens || s.MaxLabels < 0 ||
		s.MaxLabels > maxRowTokens || s.LabelTokens < 0 {
		return fmt.Errorf("lengths %d to %d, labels to %d", s.MinLength, s.MaxLength, s.MaxLabels)
	}
	return checkLengths(s)
}

// validPartName checks that a shard has the name of one of a part's, after the last one.
func validPartName(split, name string, partitions int, last *partName) bool {
	n, ok := parsePartName(name)
	if !ok || n.temp || splitNames[n.split] != split || n.part >= partitions || !n.after(*last) {
		return false
	}
	*last = n
	return true
}

func validHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// openSized opens a file for reading and returns its size.
func openSized(fsys FS, path string) (File, int64, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	size, err := fileSize(f)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// readSmallFile reads a whole file of at most limit bytes.
func readSmallFile(fsys FS, path string, limit int64) ([]byte, error) {
	f, size, err := openSized(fsys, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, &FileError{File: path, Offset: -1, Row: -1, Cause: fmt.Errorf("%w: %d bytes", ErrTooLarge, size)}
	}
	data := make([]byte, size)
	return data, readFull(f, path, data, 0)
}

// readFull fills p from offset. If the file ends before, the error is ErrTruncated.
func readFull(f File, path string, p []byte, offset int64) error {
	n, err := f.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return truncated(path, offset+int64(n), offset+int64(len(p)))
	}
	return fmt.Errorf("read %s at byte %d: %w", path, offset, withoutPath(err))
}

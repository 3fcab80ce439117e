package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
)

// FormatVersion is the version of the format, the only one that is written and read.
const FormatVersion = shardfile.FormatVersion

// maxManifestBytes limits the manifest, which is read into memory: it has room for some 300,000
// shards.
const maxManifestBytes = 64 << 20

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
	Part      *PartitionInfo   `json:"part,omitempty"`
	Merged    *JoinedInfo      `json:"merged,omitempty"`

	seal string // see Seal
}

// PartitionInfo is what the manifest of a partition holds in addition to a dataset's.
type PartitionInfo struct {
	Number int    `json:"number"`
	Of     int    `json:"of"`
	Plan   string `json:"plan"` // the seal of the plan
	// State is what the build passes to the merge.
	State json.RawMessage `json:"state"`
}

// JoinedInfo is what the manifest of a merged dataset holds in addition.
type JoinedInfo struct {
	Partitions int    `json:"partitions"`
	Plan       string `json:"plan"` // the seal of the plan
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
	Files    int64  `json:"files,omitempty"` // files of a folder or glob that stands for them; 0 for a single input
	Bytes    int64  `json:"bytes"`           // size of all files before decompression; -1 if unknown
	Checksum string `json:"checksum"`        // "algorithm:hex"
	ETag     string `json:"etag,omitempty"`  // a remote file's, sent by its server
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
	Lengths [][3]int64 `json:"lengths"`
	// LossTokens counts the tokens that carry loss: those that loss_mask marks, or all of labels, or else all of
	// input_ids. LossShare is their share of the tokens of both columns. Loss has them for earlier versions, too.
	LossTokens int64   `json:"loss_tokens,omitempty"`
	LossShare  float64 `json:"loss_share,omitempty"`
	// Sources are those with text, in the order of their documents, which is that of rows that are not packed. It is
	// nil in datasets of earlier versions.
	Sources []SourceCounts `json:"sources,omitempty"`
	Shards  []ShardInfo    `json:"shards"`
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

// Encode returns the bytes of manifest.json.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	err := m.EncodeTo(&b, func(split string, add func(ShardInfo) error) error {
		for _, info := range m.Split(split).Shards {
			if err := add(info); err != nil {
				return err
			}
		}
		return nil
	})
	return b.Bytes(), err
}

// EncodeTo writes the bytes of manifest.json. shards passes the entries of a split's shards in their order, so
// that those of a large dataset are never in memory together.
func (m *Manifest) EncodeTo(to io.Writer, shards func(split string, add func(ShardInfo) error) error) error {
	w := shardfile.NewSealedWriter(to, maxManifestBytes)
	w.Member("format", m.Format)
	w.Member("version", m.Version)
	w.Member("schema", m.Schema)
	w.Member("settings", m.Settings)
	w.Member("tokenizer", m.Tokenizer)
	w.Lines("sources", len(m.Sources), func(i int) any { return m.Sources[i] })
	w.Member("counters", m.Counters)
	if len(m.Dropped) > 0 {
		w.Member("dropped", m.Dropped)
	}
	w.Open("splits")
	for i := range m.Splits {
		s := &m.Splits[i]
		w.Element(i == 0)
		w.Field("name", s.Name)
		w.Field("examples", s.Examples)
		w.Field("tokens", s.Tokens)
		w.Field("label_tokens", s.LabelTokens)
		w.Field("min_length", s.MinLength)
		w.Field("max_length", s.MaxLength)
		w.Field("max_labels", s.MaxLabels)
		w.Field("lengths", s.Lengths)
		if s.Sources != nil {
			w.Field("loss_tokens", s.LossTokens)
			w.Field("loss_share", s.LossShare)
			w.FieldLines("sources", len(s.Sources), func(i int) any { return s.Sources[i] })
		}
		if s.List != nil {
			w.LastField("shard_list", s.List)
		} else {
			w.LastLines("shards", func(add func(any) error) error {
				return shards(s.Name, func(info ShardInfo) error { return add(info) })
			})
		}
		w.EndElement()
	}
	w.Close()
	w.Lines("files", len(m.Files), func(i int) any { return m.Files[i] })
	if m.Part != nil {
		w.Member("part", m.Part)
	}
	if m.Merged != nil {
		w.Member("merged", m.Merged)
	}
	return w.Seal()
}

// ReadManifest reads and checks the manifest of a folder. The error is ErrNotFound if there is
// none.
func ReadManifest(fsys fs.FS, dir string) (*Manifest, error) {
	return ReadManifestFile(fsys, dir, shardfile.ManifestName)
}

// ReadManifestFile reads a manifest that has another name than its own.
func ReadManifestFile(fsys fs.FS, dir, name string) (*Manifest, error) {
	path := shardfile.Join(dir, name)
	files := shardfile.ReadingOf(fsys)
	data, err := shardfile.ReadFile(files, path, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		cause := ErrNotFound
		if _, err := files.Stat(shardfile.Join(dir, shardfile.BuildCheckpointName)); err == nil {
			cause = ErrUnfinished
		}
		return nil, shardfile.Wrong(path, cause)
	}
	if err != nil {
		return nil, err
	}
	return ParseManifest(path, data)
}

// ParseManifest parses a manifest and checks everything that can be checked without the other
// files. file is for messages.
func ParseManifest(file string, data []byte) (*Manifest, error) {
	// Check the version first: another format may seal its manifest in another way.
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err == nil && head.Format == "dsload" && head.Version != FormatVersion {
		return nil, shardfile.Wrong(file, fmt.Errorf("%w %d: this dsload reads version %d; build the dataset again, or read it "+
			"with the dsload that wrote it", ErrVersion, head.Version, FormatVersion))
	}
	if head.Format != "dsload" && json.Valid(data) && !bytes.Contains(data, []byte(shardfile.SealBefore)) {
		return nil, shardfile.Wrong(file, shardfile.ErrOtherManifest)
	}
	seal, err := shardfile.CheckSeal(file, data)
	if err != nil {
		return nil, err
	}
	m := &Manifest{seal: seal}
	if err = json.Unmarshal(data, m); err == nil {
		err = m.validate()
	}
	if err != nil {
		return nil, shardfile.Wrong(file, fmt.Errorf("%w: %w", ErrCorrupt, err))
	}
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
	if err := shardfile.Shape(m.Schema).Validate(); err != nil {
		return err
	}
	for _, role := range slices.Sorted(maps.Keys(m.Tokenizer.Special)) {
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
		n := shardfile.SplitIndex(s.Name)
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
		if !shardfile.ValidExtraName(f.Name) || seen[f.Name] || f.Bytes < 0 || !validHash(f.BLAKE3) {
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
	if len(s.Shards) == 0 || partitions == 0 && len(s.Shards) > shardfile.MaxShardIndex+1 {
		return fmt.Errorf("%d shards", len(s.Shards))
	}
	var rows, tokens int64
	last := shardfile.PartName{Part: -1}
	for i, sh := range s.Shards {
		n, ofPart := shardfile.ParsePartName(sh.Name)
		switch {
		case partitions > 0 && (!ofPart || n.Temp || shardfile.SplitNames[n.Split] != s.Name || n.Part >= partitions || !n.After(last)),
			partitions == 0 && sh.Name != shardfile.ShardName(s.Name, i):
			return fmt.Errorf("shard %d is named %q", i, sh.Name)
		case sh.Rows < 1 || sh.Rows > sh.Bytes || sh.Tokens < sh.Rows ||
			sh.Tokens > sh.Bytes, sh.Bytes > 2*shardfile.MaxShardBytes:
			return fmt.Errorf("shard %s: %d rows, %d tokens, %d bytes", sh.Name, sh.Rows, sh.Tokens, sh.Bytes)
		case !validHash(sh.BLAKE3):
			return fmt.Errorf("shard %s: checksum %q", sh.Name, sh.BLAKE3)
		case !validHash(sh.Footer):
			return fmt.Errorf("shard %s: checksum %q of its footer", sh.Name, sh.Footer)
		}
		last = n
		rows += sh.Rows // no overflow: 100,000 shards of less than 2^37 bytes
		tokens += sh.Tokens
	}
	if rows != s.Examples || tokens != s.Tokens {
		return fmt.Errorf("%d examples and %d tokens, its shards have %d and %d", s.Examples, s.Tokens, rows, tokens)
	}
	return s.validateLengths()
}

func (s *SplitInfo) validateLengths() error {
	if s.MinLength < 1 || s.MaxLength < s.MinLength || s.MaxLength > shardfile.MaxRowTokens || s.MaxLabels < 0 ||
		s.MaxLabels > shardfile.MaxRowTokens || s.LabelTokens < 0 {
		return fmt.Errorf("lengths %d to %d, labels to %d", s.MinLength, s.MaxLength, s.MaxLabels)
	}
	if err := s.validateSources(); err != nil {
		return err
	}
	return checkLengths(s)
}

func validHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// BucketBounds returns the smallest and the largest length of the histogram bucket that holds
// length.
func BucketBounds(length int64) (low, high int64) {
	b := shardfile.LengthBucket(int(min(max(length, 0), shardfile.MaxRowTokens)))
	if b == shardfile.NumBuckets-1 {
		return shardfile.MaxRowTokens, shardfile.MaxRowTokens
	}
	return shardfile.BucketLow(b), shardfile.BucketLow(b+1) - 1
}

// checkLengths checks that a manifest's histogram is well formed and adds up to the split's totals.
func checkLengths(s *SplitInfo) error {
	var rows, tokens int64
	last := int64(-1)
	for _, h := range s.Lengths {
		low, high := BucketBounds(h[0])
		if h[0] != low || low <= last || low > s.MaxLength || high < s.MinLength {
			return fmt.Errorf("histogram bucket %d", h[0])
		}
		last = low
		// Bound the rows first, so that the products below stay within 63 bits.
		if h[1] < 1 || h[1] > s.Examples || h[2] < 1 || h[2] > s.Tokens || h[2]/h[1] < low || (h[2]-1)/h[1] >= high {
			return fmt.Errorf("histogram bucket %d: %d rows, %d tokens", h[0], h[1], h[2])
		}
		rows += h[1]
		tokens += h[2]
		if rows > s.Examples || tokens > s.Tokens {
			break
		}
	}
	if rows != s.Examples || tokens != s.Tokens {
		return fmt.Errorf("histogram has %d rows and %d tokens, the split %d and %d", rows, tokens, s.Examples,
			s.Tokens)
	}
	return nil
}

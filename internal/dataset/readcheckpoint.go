package dataset

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// A checkpoint is read twice through a small buffer: first for its checksum, then for its content.
// So resuming takes no more memory than building, and nothing in the file is trusted before all of
// it was checked.

// savedState is a decoded checkpoint.
type savedState struct {
	opts   BuilderOptions // Schema, ShardBytes and Settings
	begun  bool
	cursor []byte
	splits [shardfile.NumSplits]savedSplit
}

type savedSplit struct {
	buildSplit        // the open shard is without its file
	openSum    []byte // BLAKE3 of its bytes
}

// readCheckpoint checks and decodes the checkpoint of a build with the options want. The checkpoint
// of another build is a *SettingsError.
func readCheckpoint(fsys shardfile.FS, path, dir string, want BuilderOptions) (*savedState, error) {
	r, err := openCheckpoint(fsys, path)
	if err != nil {
		return nil, err
	}
	defer r.f.Close()
	st, err := r.head()
	if err != nil || !st.begun { // no rows follow, whatever the options
		return st, err
	}
	if err := sameBuild(dir, st.opts, want); err != nil {
		return nil, err
	}
	return st, r.splits(st, dir, want) // its options limit the sizes
}

// readHead checks a checkpoint, of any build, and decodes what comes before the splits.
func readHead(fsys shardfile.ReadFS, path string) (*savedState, error) {
	r, err := openCheckpoint(fsys, path)
	if err != nil {
		return nil, err
	}
	defer r.f.Close()
	return r.head()
}

// openCheckpoint opens a checkpoint file and compares its checksum. The caller closes the file.
func openCheckpoint(fsys shardfile.ReadFS, path string) (_ *checkpointReader, err error) {
	f, size, err := shardfile.OpenSized(fsys, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close() // err is the one to report
		}
	}()
	if least := int64(len(checkpointMagic) + 32); size < least {
		return nil, shardfile.Truncated(path, size, least)
	}
	r := &checkpointReader{f: f, path: path, end: size - 32, store: make([]byte, checkpointBufferBytes)}
	hash := blake3.New()
	if err := shardfile.Rehash(f, path, r.end, hash, r.store); err != nil {
		return nil, err
	}
	var have, sum [32]byte
	if err := shardfile.ReadFull(f, path, have[:], r.end); err != nil {
		return nil, err
	}
	if hash.Sum(sum[:0]); have != sum {
		return nil, shardfile.Corrupt(path, -1, "its own checksum differs")
	}
	switch magic := string(r.raw(int64(len(checkpointMagic)))); {
	case r.err != nil:
		return nil, r.err
	case magic != checkpointMagic:
		return nil, &shardfile.FileError{File: path, Offset: 0, Row: -1, Cause: fmt.Errorf("%w of an unfinished build; "+
			"the version of dsload that began it can finish it", shard.ErrVersion)}
	}
	return r, nil
}

// head decodes the part between the magic and the splits.
func (r *checkpointReader) head() (*savedState, error) {
	st := &savedState{}
	vocab := r.int(1, shardfile.MaxVocabSize)
	st.opts.Schema = shard.Schema{VocabSize: int(vocab), Labels: r.bool(), LossMask: r.bool(), Segments: r.bool()}
	st.opts.ShardBytes = r.int(shardfile.MinShardBytes, shardfile.MaxShardBytes)
	st.opts.Settings = r.bytes(nil)
	st.begun = r.bool()
	st.cursor = r.bytes(nil)
	return st, r.fault()
}

// splits decodes the part after the head.
func (r *checkpointReader) splits(st *savedState, dir string, want BuilderOptions) error {
	l, shards := shardfile.NewLayout(shardfile.Shape(st.opts.Schema)), 0
	for i := range st.splits {
		st.splits[i].name = shardfile.SplitNames[i]
		if err := st.splits[i].decode(r, l); err != nil {
			return err
		}
		shards += len(st.splits[i].shards)
		if err := want.checkShards(dir, shards); err != nil {
			return err
		}
	}
	if r.pos != r.end {
		r.bad = true
	}
	return r.fault()
}

func (s *savedSplit) decode(r *checkpointReader, l *shardfile.Layout) error {
	const many = math.MaxInt64
	st := &s.stats
	for _, v := range [...]*int64{&st.Rows, &st.Tokens, &st.LabelTokens, &st.MinLength, &st.MaxLength, &st.MaxLabels} {
		*v = r.int(0, many)
	}
	s.document = r.int(-1, many)
	s.part = int32(r.int(0, math.MaxInt32))
	for n := r.int(0, int64(shardfile.NumBuckets)); n > 0 && !r.bad; n-- {
		i := r.int(0, int64(shardfile.NumBuckets)-1)
		st.Hist[i] = [2]int64{r.int(1, many), r.int(0, many)}
	}
	for n := r.int(0, shardfile.MaxShardIndex+1); n > 0 && !r.bad; n-- {
		c := committedShard{rows: r.int(1, many), tokens: r.int(1, many), bytes: r.int(1, many)}
		copy(c.sum[:], r.raw(32))
		copy(c.footer[:], r.raw(32))
		s.shards = append(s.shards, c)
	}
	if r.bool() {
		s.open = &openShard{pos: r.int(0, many), tokens: r.int(0, many)}
		s.openSum = append([]byte(nil), r.raw(32)...)
		end := int64(len(l.Head))
		for n := r.int(0, many); n > 0 && !r.bad; n-- {
			k := shardfile.Block{Rows: uint32(r.int(1, shardfile.MaxBatchRows)), Body: r.int(0, 2*shardfile.MaxShardBytes),
				Crc: uint32(r.int(0, math.MaxUint32))}
			s.open.blocks = append(s.open.blocks, k)
			end += l.MetaLen + k.Body
			r.bad = r.bad || end > s.open.pos
		}
		r.bad = r.bad || end != s.open.pos
	}
	rows := r.int(0, shardfile.MaxBatchRows)
	if r.bad || rows == 0 {
		return r.fault()
	}
	s.prepare(l)
	s.pending.rows, s.pending.bytes = rows, r.int(1, many)
	for i := range s.pending.cols {
		c, kind := &s.pending.cols[i], l.Cols[i]
		c.n = r.int(0, r.end*8)
		c.offsets = r.bytes(c.offsets[:0])
		c.values = r.bytes(c.values[:0])
		r.bad = r.bad || int64(len(c.values)) != kind.Value.Bytes(c.n) || !validOffsets(kind, rows, c.n, c.offsets)
	}
	return r.fault()
}

// validOffsets reports whether offsets are those of a column of rows with n values.
func validOffsets(c shardfile.Column, rows, n int64, offsets []byte) bool {
	if !c.List {
		return len(offsets) == 0 && n == rows
	}
	if int64(len(offsets)) != 4*(rows+1) {
		return false
	}
	last := int64(0)
	for i := int64(0); i <= rows; i++ {
		v := int64(int32(binary.LittleEndian.Uint32(offsets[4*i:])))
		if v < last || i == 0 && v != 0 {
			return false
		}
		last = v
	}
	return last == n
}

// checkpointReader decodes a checkpoint. After the first impossible value, bad is set and all
// values are zero.
type checkpointReader struct {
	f     shardfile.File
	path  string
	pos   int64  // position of the next byte to take
	end   int64  // where the checksum begins
	store []byte // what ready lies in
	ready []byte // read and not yet taken
	bad   bool
	err   error // reading the file failed; bad is set, too
}

// fault returns the error for a file that could not be read or is malformed.
func (r *checkpointReader) fault() error {
	switch {
	case r.err != nil:
		return r.err
	case r.bad:
		return shardfile.Corrupt(r.path, r.pos, "malformed")
	}
	return nil
}

// raw returns the next n bytes, at most as many as the buffer holds. They are valid until the next
// call.
func (r *checkpointReader) raw(n int64) []byte {
	if r.bad || n > r.end-r.pos {
		r.bad = true
		return nil
	}
	if int64(len(r.ready)) < n {
		have := copy(r.store, r.ready)
		at := r.pos + int64(have)
		r.ready = r.store[:min(int64(len(r.store)), int64(have)+r.end-at)]
		if !r.read(r.ready[have:], at) {
			return nil
		}
	}
	p := r.ready[:n]
	r.ready, r.pos = r.ready[n:], r.pos+n
	return p
}

func (r *checkpointReader) read(p []byte, at int64) bool {
	r.err = shardfile.ReadFull(r.f, r.path, p, at)
	r.bad = r.err != nil
	return !r.bad
}

func (r *checkpointReader) int(low, high int64) int64 {
	p := r.raw(8)
	if p == nil {
		return 0
	}
	v := int64(binary.LittleEndian.Uint64(p))
	if v < low || v > high {
		r.bad = true
		return 0
	}
	return v
}

func (r *checkpointReader) bool() bool { return r.int(0, 1) == 1 }

// bytes appends a byte string to dst. It allocates no more than the file's size.
func (r *checkpointReader) bytes(dst []byte) []byte {
	n := r.int(0, r.end)
	if r.bad || n > r.end-r.pos {
		r.bad = true
		return dst
	}
	start := len(dst)
	dst = grow(dst, int(n))
	have := copy(dst[start:], r.ready)
	r.ready = r.ready[have:]
	if rest := dst[start+have:]; len(rest) > 0 && !r.read(rest, r.pos+int64(have)) {
		return dst[:start]
	}
	r.pos += n
	return dst
}

// Unfinished describes a build that has not finished.
type Unfinished struct {
	Settings json.RawMessage // BuilderOptions.Settings
	Cursor   []byte          // the cursor of the last checkpoint; nil before the first
}

// ReadUnfinished reads the checkpoint of a folder, whatever its options. It takes no lock: the
// build may be running. The error is ErrNotFound if there is no checkpoint.
func ReadUnfinished(fsys shardfile.ReadFS, dir string) (*Unfinished, error) {
	path := shardfile.Join(dir, shardfile.BuildCheckpointName)
	st, err := readHead(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, shardfile.Wrong(path, shard.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	u := &Unfinished{Settings: st.opts.Settings}
	if st.begun {
		u.Cursor = st.cursor
	}
	return u, nil
}

// HasRows reports whether a checkpoint follows the first row of its build. Until then it only claims the folder.
// Without a checkpoint there are none.
func HasRows(fsys shardfile.ReadFS, path string) (bool, error) {
	st, err := readHead(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.begun, err
}

// ReadRun returns run.json of a finished dataset: Provenance.Run as a sealed JSON object. The error
// is ErrNotFound if there is none.
func ReadRun(fsys shardfile.FS, dir string) (json.RawMessage, error) {
	path := shardfile.Join(dir, shardfile.RunName)
	data, err := shardfile.ReadFile(fsys, path, shardfile.MaxRunBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, shardfile.Wrong(path, shard.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	_, err = shardfile.CheckSeal(path, data)
	return data, err
}

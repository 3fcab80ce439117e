package shard

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/zeebo/blake3"
)

// The checkpoint file: everything that the shards on disk do not say about an unfinished build. All integers are
// little-endian; FORMAT.md has the layout. A BLAKE3 checksum ends it.

const (
	checkpointMagic       = "DSLCKPT\x01"
	checkpointBufferBytes = 16 << 10
	maxCheckpointBytes    = 2 << 30
)

// Checkpoint is what OpenBuilder found of an earlier run.
type Checkpoint struct {
	Cursor []byte // what the last Checkpoint was given
}

// Checkpoint makes all rows appended so far, and cursor, durable. After a crash OpenBuilder returns the newest cursor and
// has exactly the rows that were appended before it.
func (b *Builder) Checkpoint(cursor []byte) error {
	if b.err != nil {
		return b.err
	}
	for i := range b.splits {
		if open := b.splits[i].open; open != nil {
			if err := open.sync(); err != nil {
				return b.fail(err)
			}
		}
	}
	// The names of open shards have to last before a checkpoint that counts on them does.
	if err := b.syncNames(); err != nil {
		return b.fail(err)
	}
	if err := b.writeCheckpoint(cursor, true); err != nil {
		return b.fail(err)
	}
	return nil
}

// writeCheckpoint replaces the checkpoint file. begun is false for the one that only claims the folder.
func (b *Builder) writeCheckpoint(cursor []byte, begun bool) error {
	temp := b.path(checkpointName + tempSuffix)
	f, err := b.fs.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	if b.ckpt == nil {
		b.ckpt = &checkpointWriter{buf: make([]byte, 0, checkpointBufferBytes), hash: blake3.New()}
	}
	w := b.ckpt
	w.start(f, temp)
	b.encodeState(w, cursor, begun)
	err = w.end()
	if err == nil {
		if err = f.Sync(); err != nil {
			err = fmt.Errorf("sync %s: %w", temp, err)
		}
	}
	if e := f.Close(); e != nil && err == nil {
		err = fmt.Errorf("close %s: %w", temp, e)
	}
	if err != nil {
		return err
	}
	if err := b.fs.Rename(temp, b.path(checkpointName)); err != nil {
		return err
	}
	b.namesNew = true
	return b.syncNames()
}

// encodeState writes what decodeState reads.
func (b *Builder) encodeState(w *checkpointWriter, cursor []byte, begun bool) {
	w.raw([]byte(checkpointMagic))
	o := b.opts
	w.int(int64(o.Schema.VocabSize))
	w.bool(o.Schema.Labels)
	w.bool(o.Schema.LossMask)
	w.bool(o.Schema.Segments)
	w.int(o.ShardBytes)
	w.bytes(o.Settings)
	w.bool(begun)
	w.bytes(cursor)
	for i := range b.splits {
		b.splits[i].encode(w)
	}
}

func (s *buildSplit) encode(w *checkpointWriter) {
	st := &s.stats
	for _, v := range [...]int64{st.rows, st.tokens, st.labelTokens, st.minLength, st.maxLength, st.maxLabels, s.document, int64(s.part)} {
		w.int(v)
	}
	used := 0
	for _, h := range st.hist {
		if h[0] > 0 {
			used++
		}
	}
	w.int(int64(used))
	for i, h := range st.hist {
		if h[0] > 0 {
			w.int(int64(i))
			w.int(h[0])
			w.int(h[1])
		}
	}
	w.int(int64(len(s.shards)))
	for i := range s.shards {
		c := &s.shards[i]
		w.int(c.rows)
		w.int(c.tokens)
		w.int(c.bytes)
		w.raw(c.sum[:])
	}
	w.bool(s.open != nil)
	if s.open != nil {
		w.int(s.open.pos)
		w.int(s.open.tokens)
		w.raw(s.open.hash.Sum(w.sum[:0]))
		w.int(int64(len(s.open.blocks)))
		for _, k := range s.open.blocks {
			w.int(k.rows)
			w.int(k.body)
		}
	}
	if s.pending == nil || s.pending.rows == 0 {
		w.int(0)
		return
	}
	w.int(s.pending.rows)
	w.int(s.pending.bytes)
	for i := range s.pending.cols {
		c := &s.pending.cols[i]
		w.int(c.n)
		w.bytes(c.offsets)
		w.bytes(c.values)
	}
}

// checkpointWriter writes through a small buffer and a hash; the first error sticks.
type checkpointWriter struct {
	f    File
	path string
	pos  int64
	buf  []byte
	hash *blake3.Hasher
	sum  [32]byte
	err  error
}

func (w *checkpointWriter) start(f File, path string) {
	w.f, w.path, w.pos, w.buf, w.err = f, path, 0, w.buf[:0], nil
	w.hash.Reset()
}

func (w *checkpointWriter) flush() {
	if len(w.buf) > 0 {
		w.put(w.buf)
		w.buf = w.buf[:0]
	}
}

func (w *checkpointWriter) put(p []byte) {
	w.hash.Write(p)
	if w.err == nil {
		w.err = writeAt(w.f, w.path, p, w.pos)
	}
	w.pos += int64(len(p))
}

func (w *checkpointWriter) raw(p []byte) {
	if len(w.buf)+len(p) > cap(w.buf) {
		w.flush()
	}
	if len(p) > cap(w.buf) {
		w.put(p)
		return
	}
	w.buf = append(w.buf, p...)
}

func (w *checkpointWriter) int(v int64) {
	if len(w.buf)+8 > cap(w.buf) {
		w.flush()
	}
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(v))
}

func (w *checkpointWriter) bool(v bool) {
	if v {
		w.int(1)
	} else {
		w.int(0)
	}
}

func (w *checkpointWriter) bytes(p []byte) {
	w.int(int64(len(p)))
	w.raw(p)
}

// end writes the checksum of all that came before it.
func (w *checkpointWriter) end() error {
	w.flush()
	sum := w.hash.Sum(w.sum[:0])
	if w.err == nil {
		w.err = writeAt(w.f, w.path, sum, w.pos)
	}
	w.f = nil
	return w.err
}

// savedState is a decoded checkpoint.
type savedState struct {
	opts   BuilderOptions // Schema, ShardBytes and Settings
	begun  bool
	cursor []byte
	splits [numSplits]savedSplit
}

type savedSplit struct {
	buildSplit        // without open
	hasOpen    bool   // the fields below describe the open shard
	openPos    int64  // its length
	openTokens int64  // of its batches
	openSum    []byte // BLAKE3 of its bytes
	openBlocks []block
}

// decodeCheckpoint checks and parses a checkpoint file; file is for messages.
func decodeCheckpoint(file string, data []byte) (*savedState, error) {
	if len(data) < len(checkpointMagic)+32 {
		return nil, truncated(file, int64(len(data)), int64(len(checkpointMagic)+32))
	}
	body := data[:len(data)-32]
	if sum := blake3.Sum256(body); string(sum[:]) != string(data[len(body):]) {
		return nil, corrupt(file, -1, "its own checksum differs")
	}
	if string(body[:len(checkpointMagic)]) != checkpointMagic {
		return nil, &FileError{File: file, Offset: 0, Row: -1, Cause: ErrVersion}
	}
	r := &checkpointReader{data: body, pos: len(checkpointMagic)}
	st := &savedState{}
	vocab := r.int(1, maxVocabSize)
	st.opts.Schema = Schema{VocabSize: int(vocab), Labels: r.bool(), LossMask: r.bool(), Segments: r.bool()}
	st.opts.ShardBytes = r.int(minShardBytes, maxShardBytes)
	st.opts.Settings = r.bytes()
	st.begun = r.bool()
	st.cursor = append([]byte(nil), r.bytes()...)
	if r.bad {
		return nil, corrupt(file, int64(r.pos), "malformed")
	}
	l := newLayout(st.opts.Schema)
	for i := range st.splits {
		st.splits[i].name = splitNames[i]
		st.splits[i].decode(r, l)
	}
	if r.bad || r.pos != len(body) {
		return nil, corrupt(file, int64(r.pos), "malformed")
	}
	return st, nil
}

func (s *savedSplit) decode(r *checkpointReader, l *layout) {
	const many = math.MaxInt64
	st := &s.stats
	for _, v := range [...]*int64{&st.rows, &st.tokens, &st.labelTokens, &st.minLength, &st.maxLength, &st.maxLabels} {
		*v = r.int(0, many)
	}
	s.document = r.int(-1, many)
	s.part = int32(r.int(0, math.MaxInt32))
	for n := r.int(0, int64(numBuckets)); n > 0 && !r.bad; n-- {
		i := r.int(0, int64(numBuckets)-1)
		st.hist[i] = [2]int64{r.int(1, many), r.int(0, many)}
	}
	for n := r.int(0, maxShardIndex+1); n > 0 && !r.bad; n-- {
		c := committedShard{rows: r.int(1, many), tokens: r.int(1, many), bytes: r.int(1, many)}
		copy(c.sum[:], r.raw(32))
		s.shards = append(s.shards, c)
	}
	if s.hasOpen = r.bool(); s.hasOpen {
		s.openPos, s.openTokens = r.int(0, many), r.int(0, many)
		s.openSum = r.raw(32)
		end := int64(len(l.head))
		for n := r.int(0, many); n > 0 && !r.bad; n-- {
			k := block{rows: r.int(1, maxBatchRows), body: r.int(0, 2*maxShardBytes)}
			s.openBlocks = append(s.openBlocks, k)
			end += l.metaLen + k.body
			r.bad = r.bad || end > s.openPos
		}
		r.bad = r.bad || end != s.openPos
	}
	rows := r.int(0, maxBatchRows)
	if r.bad || rows == 0 {
		return
	}
	s.prepare(l)
	s.pending.rows, s.pending.bytes = rows, r.int(1, many)
	for i := range s.pending.cols {
		c, kind := &s.pending.cols[i], l.cols[i]
		c.n = r.int(0, int64(len(r.data)*8))
		c.offsets = append(c.offsets[:0], r.bytes()...)
		values := r.bytes()
		r.bad = r.bad || int64(len(values)) != kind.value.bytes(c.n) || !validOffsets(kind, rows, c.n, c.offsets)
		c.values = grow(c.values[:0], len(values))
		copy(c.values, values)
	}
}

// validOffsets tells whether offsets are those of a column of rows with n values.
func validOffsets(c column, rows, n int64, offsets []byte) bool {
	if !c.list {
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

// checkpointReader takes a checkpoint apart. After the first thing that cannot be, bad is set and all values are zero.
type checkpointReader struct {
	data []byte
	pos  int
	bad  bool
}

func (r *checkpointReader) raw(n int64) []byte {
	if r.bad || n < 0 || n > int64(len(r.data)-r.pos) {
		r.bad = true
		return nil
	}
	p := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return p
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

func (r *checkpointReader) bytes() []byte { return r.raw(r.int(0, math.MaxInt64)) }

// rehash feeds the first n bytes of an open shard to h.
func rehash(f File, path string, n int64, h io.Writer, buf []byte) error {
	for pos := int64(0); pos < n; {
		p := buf[:min(n-pos, int64(len(buf)))]
		if err := readFull(f, path, p, pos); err != nil {
			return err
		}
		h.Write(p)
		pos += int64(len(p))
	}
	return nil
}

package dataset

import (
	"encoding/binary"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/zeebo/blake3"
)

// The checkpoint file holds the state of an unfinished build that its shards do not hold. All
// integers are little-endian. FORMAT.md has the layout. A BLAKE3 checksum ends the file.

const (
	checkpointMagic       = "DSLCKPT\x01"
	checkpointBufferBytes = 16 << 10
)

// Checkpoint is what an earlier run left for OpenBuilder.
type Checkpoint struct {
	Cursor []byte // the argument of the last Save
}

// Checkpoint makes all rows so far durable, with what cursor returns, which Save describes. Unless it must be now, it
// may begin that in the background instead, and take no checkpoint yet; then it does not call cursor.
func (b *Builder) Checkpoint(now bool, cursor func() ([][]byte, error)) (taken bool, err error) {
	if cursor == nil {
		return true, b.forget()
	}
	if !now && !b.SyncAhead() {
		return false, nil
	}
	parts, err := cursor()
	if err == nil {
		err = b.Save(parts...)
	}
	return err == nil, err
}

// Save makes cursor and all rows appended so far durable. After a crash OpenBuilder returns
// the newest cursor, and its Builder has exactly the rows appended before that.
// The cursor is given in parts, which are joined.
func (b *Builder) Save(cursor ...[]byte) error {
	err := b.settle()
	if err != nil {
		return err
	}
	err = b.waitBackground()
	for i := range b.splits {
		if open := b.splits[i].open; open != nil && err == nil {
			err = open.sync()
		}
	}
	if err == nil { // the names of open shards must be durable before a checkpoint relies on them
		err = b.syncNames()
	}
	if err == nil {
		err = b.writeCheckpoint(true, cursor...)
	}
	return b.fail(err)
}

// forget removes the checkpoints of a build without rows, so that the folder accepts other options
// again or, after an addition, is the old dataset again.
func (b *Builder) forget() error {
	switch err := b.settle(); {
	case err != nil:
		return err
	case b.base != nil:
		return b.removeCheckpoint()
	}
	return b.fail(b.writeCheckpoint(false))
}

func (b *Builder) checkpointName() string {
	return shardfile.CheckpointName(b.opts.Part, b.opts.Append)
}

// writeCheckpoint replaces the checkpoint file. begun is false for the first one, which only claims
// the folder.
func (b *Builder) writeCheckpoint(begun bool, cursor ...[]byte) error {
	if b.ckpt == nil {
		b.ckpt = &checkpointWriter{buf: make([]byte, 0, checkpointBufferBytes), hash: blake3.New()}
	}
	if err := b.create(b.checkpointName(), func(f shardfile.File, temp string) error {
		b.ckpt.start(f, temp)
		b.encodeState(b.ckpt, begun, cursor...)
		return b.ckpt.end()
	}); err != nil {
		return err
	}
	return b.syncNames()
}

// encodeState writes what decodeState reads.
func (b *Builder) encodeState(w *checkpointWriter, begun bool, cursor ...[]byte) {
	w.raw([]byte(checkpointMagic))
	o := b.opts
	w.int(int64(o.Schema.VocabSize))
	w.bool(o.Schema.Labels)
	w.bool(o.Schema.LossMask)
	w.bool(o.Schema.Segments)
	w.int(o.ShardBytes)
	w.bytes(o.Settings)
	w.bool(begun)
	var size int64
	for _, part := range cursor {
		size += int64(len(part))
	}
	w.int(size)
	for _, part := range cursor {
		w.raw(part)
	}
	for i := range b.splits {
		b.splits[i].encode(w)
	}
}

func (s *buildSplit) encode(w *checkpointWriter) {
	st := &s.stats
	for _, v := range [...]int64{st.Rows, st.Tokens, st.LabelTokens, st.MinLength, st.MaxLength, st.MaxLabels,
		s.document, int64(s.part)} {
		w.int(v)
	}
	used := 0
	for _, h := range st.Hist {
		if h[0] > 0 {
			used++
		}
	}
	w.int(int64(used))
	for i, h := range st.Hist {
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
		w.raw(c.footer[:])
	}
	w.bool(s.open != nil)
	if s.open != nil {
		w.int(s.open.pos)
		w.int(s.open.tokens)
		w.raw(s.open.hash.Sum(w.sum[:0]))
		w.int(int64(len(s.open.blocks)))
		for _, k := range s.open.blocks {
			w.int(int64(k.Rows))
			w.int(k.Body)
			w.int(int64(k.Crc))
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

// checkpointWriter writes through a small buffer and a hash. It keeps the first error.
type checkpointWriter struct {
	f    shardfile.File
	path string
	pos  int64
	buf  []byte
	hash *blake3.Hasher
	sum  [32]byte
	err  error
}

func (w *checkpointWriter) start(f shardfile.File, path string) {
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
		w.err = shardfile.WriteAt(w.f, w.path, p, w.pos)
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

// end writes the checksum of everything before.
func (w *checkpointWriter) end() error {
	w.flush()
	sum := w.hash.Sum(w.sum[:0])
	if w.err == nil {
		w.err = shardfile.WriteAt(w.f, w.path, sum, w.pos)
	}
	w.f = nil
	return w.err
}

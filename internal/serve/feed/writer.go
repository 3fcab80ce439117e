package feed

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/dsload/dsload/internal/serve/collate"
)

// writer makes the body of a response in one piece of memory, which it writes when full. A padded
// batch larger than the piece never exists as a whole; several small batches leave in one write.
// After the first error it does nothing.
type writer struct {
	out   io.Writer
	enc   *encoder
	piece []byte // len: bytes not yet written; cap: fixed
	bytes int64  // written to out
	err   error
}

// minPiece is the smallest piece that any single call of take fits.
const minPiece = 4 << 10

func newWriter(out io.Writer, enc *encoder, pieceBytes int) *writer {
	return &writer{out: out, enc: enc, piece: make([]byte, 0, max(pieceBytes, minPiece))}
}

func (w *writer) flush() error {
	if w.err == nil && len(w.piece) > 0 {
		var n int
		n, w.err = w.out.Write(w.piece)
		w.bytes += int64(n)
	}
	w.piece = w.piece[:0]
	return w.err
}

// raw appends bytes unchanged.
func (w *writer) raw(p []byte) {
	for len(p) > 0 {
		dst := w.take(len(p), 1)
		copy(dst, p)
		p = p[len(dst):]
	}
}

// take returns room for at least one and at most n elements, each width bytes, which the caller
// must fill before the next call.
func (w *writer) take(n, width int) []byte {
	if cap(w.piece)-len(w.piece) < width {
		_ = w.flush() // w keeps the error
	}
	used := len(w.piece)
	n = min(n, (cap(w.piece)-used)/width)
	w.piece = w.piece[:used+n*width]
	return w.piece[used:]
}

// chunk begins an HTTP chunk of n bytes; endChunk ends it.
func (w *writer) chunk(n int64) {
	var line [20]byte
	w.raw(append(strconv.AppendInt(line[:0], n, 16), '\r', '\n'))
}

func (w *writer) endChunk() { w.raw(crlf) }

var crlf = []byte("\r\n")

// message writes an encapsulated message as one chunk.
func (w *writer) message(p []byte) {
	w.chunk(int64(len(p)))
	w.raw(p)
	w.endChunk()
}

// end writes the end-of-stream marker and the empty chunk that ends the body.
func (w *writer) end() error {
	w.message(endOfStream)
	w.raw([]byte("0\r\n\r\n"))
	return w.flush()
}

// batch writes a record batch as one chunk. The rest in the piece leaves with the next flush.
func (w *writer) batch(b *collate.Batch) error {
	rows := b.Rows()
	w.chunk(w.enc.prepare(b))
	w.raw(w.enc.head)
	for _, c := range w.enc.lists {
		length := b.Length(c.Column)
		w.each(rows+1, 4, func(dst []byte, from int) {
			for i := range len(dst) / 4 {
				binary.LittleEndian.PutUint32(dst[4*i:], uint32((from+i)*length))
			}
		})
		w.each(rows*length, c.width, func(dst []byte, from int) { b.Fill(dst, c.Column, c.width, from) })
	}
	w.int32s(rows, b.RowLength)
	w.int64s(rows, b.Example)
	w.int64s(rows, b.Position)
	w.int64s(rows, func(int) int64 { return b.Next })
	if w.enc.mixed {
		w.int32s(rows, b.SourceOf)
	}
	if w.enc.sources {
		w.int32s(rows, b.OriginOf)
	}
	w.endChunk()
	return w.err
}

// each writes a buffer of n elements and pads it to the alignment. It calls fill for consecutive
// runs of it.
func (w *writer) each(n, width int, fill func(dst []byte, from int)) {
	for from := 0; from < n && w.err == nil; {
		dst := w.take(n-from, width)
		fill(dst, from)
		from += len(dst) / width
	}
	for pad := roundUp(n*width, alignment) - n*width; pad > 0; {
		dst := w.take(pad, 1)
		clear(dst)
		pad -= len(dst)
	}
}

func (w *writer) int32s(n int, at func(i int) int32) {
	w.each(n, 4, func(dst []byte, from int) {
		for i := range len(dst) / 4 {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(at(from+i)))
		}
	})
}

func (w *writer) int64s(n int, at func(i int) int64) {
	w.each(n, 8, func(dst []byte, from int) {
		for i := range len(dst) / 8 {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(at(from+i)))
		}
	})
}

package decompress

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"io"
	"math"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/units"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"
)

// Compression is how an input is stored.
type Compression string

// The compressions.
const (
	Plain  Compression = ""
	Gzip   Compression = "gzip"
	Zstd   Compression = "zstd"
	Bzip2  Compression = "bzip2"
	XZ     Compression = "xz"
	LZ4    Compression = "lz4"    // frames
	Snappy Compression = "snappy" // framed
	Zipped Compression = "zip"
	UTF16  Compression = "utf-16" // text in that encoding, not compressed
)

// ZstdWindow returns the window that the first frame after skippable ones asks for, in bytes, 0 if head
// does not say. The decoder refuses what is not a frame.
func ZstdWindow(head []byte) int64 {
	for {
		var h zstd.Header
		if h.Decode(head) != nil {
			return 0
		}
		if !h.Skippable {
			window := h.WindowSize
			if h.SingleSegment {
				window = h.FrameContentSize
			}
			return int64(min(window, math.MaxInt64))
		}
		skip := uint64(h.HeaderSize) + uint64(h.SkippableSize)
		if skip >= uint64(len(head)) {
			return 0
		}
		head = head[skip:]
	}
}

// MemoryBytes returns the maximum memory that a decompressor with the given window holds. That of zip is not
// made here.
func (c Compression) MemoryBytes(window int64) int64 {
	switch c {
	case Gzip:
		return 256 << 10 // window, tables, input buffer
	case Zstd:
		return window + 2<<20 // window, two blocks and their tables
	case Bzip2:
		return 6 << 20 // 4 bytes per byte of a block of 900 kB, tables, input buffer
	case XZ:
		return window + 256<<10 // dictionary, probabilities, buffers
	case LZ4:
		return 2*window + 256<<10 // a block as it is stored and as it is read, history
	case Snappy:
		return 512 << 10 // a block twice, its input
	case UTF16:
		return UTF16Bytes
	}
	return 0
}

// Open reads c from src, whose own errors it passes on. Zero bytes after the compressed data
// are padding, as in gzip. Other bytes after it are treated as the format's own program treats
// them: an error after gzip and zstd data, skipped after bzip2 data.
func Open(c Compression, src *Counted, window int64) (io.Reader, func(), error) {
	nothing := func() {}
	switch c {
	case Gzip:
		z := &gzipReader{src: bufio.NewReader(src), counted: src}
		return z, nothing, z.open()
	case Zstd:
		tail := &tailReader{src: src, n: src.N}
		z, err := zstd.NewReader(tail, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(uint64(window)), zstd.WithDecoderMaxMemory(uint64(window)))
		if err != nil {
			return nil, nothing, err
		}
		return &zstdReader{z: z, tail: tail}, z.Close, nil
	case Bzip2:
		tail := &tailReader{src: bufio.NewReader(src)}
		return &bzip2Reader{z: bzip2.NewReader(tail), tail: tail}, nothing, nil
	case XZ:
		z, err := xz.NewReader(src, uint32(min(window, math.MaxUint32)))
		return &steadyReader{src: z}, nothing, err
	case LZ4:
		return &lz4Reader{src: bufio.NewReader(src), counted: src, limit: int(window)}, nothing, nil
	case Snappy:
		return snappy.NewReader(src), nothing, nil
	}
	return src, nothing, nil
}

// skipZeros goes to the next byte that is not zero; io.EOF if there is none.
func skipZeros(src *bufio.Reader) error {
	for {
		b, err := src.Peek(1)
		if err != nil || b[0] != 0 {
			return err
		}
		src.Discard(1) // it is there
	}
}

// A gzipReader reads members one after another, with zero bytes between them or at the end.
type gzipReader struct {
	src     *bufio.Reader
	counted *Counted
	z       *gzip.Reader
}

func (g *gzipReader) open() (err error) {
	if g.z == nil {
		g.z, err = gzip.NewReader(g.src)
	} else {
		err = g.z.Reset(g.src)
	}
	if err == nil {
		g.z.Multistream(false)
	} else if err == io.EOF {
		err = io.ErrUnexpectedEOF // an empty file is no gzip data
	}
	return err
}

// reset continues with another file, or part of one.
func (g *gzipReader) reset(src *Counted) error {
	g.src.Reset(src)
	g.counted = src
	return g.open()
}

func (g *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil // the next Read returns it again
			}
			return n, err
		}
		if err := g.nextMember(); err != nil {
			return 0, err
		}
	}
}

// nextMember goes to the next member; io.EOF if there is none.
func (g *gzipReader) nextMember() error {
	if err := skipZeros(g.src); err != nil {
		return err
	}
	magic, err := g.src.Peek(2)
	switch {
	case err != nil && err != io.EOF:
		return err
	case string(magic) != "\x1f\x8b":
		return foreign(Gzip, g.counted.N-int64(g.src.Buffered()))
	}
	return g.open()
}

// foreign returns the error of bytes after compressed data that are not compressed data.
func foreign(c Compression, at int64) error {
	if at == 0 {
		return fault.Of(cause.Corrupt, "the file does not begin as %s data; copy it again", c)
	}
	return fault.Of(cause.Corrupt, "bytes that are not %s follow the %s data from byte %d of the file on; "+
		"copy the file again, or keep what comes before with `head -c %d`", c, c, at, at)
}

// A tailReader remembers the last bytes that were read.
type tailReader struct {
	src  io.Reader
	n    int64
	last [16]byte // byte i of the source at i modulo 16
}

func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.src.Read(p)
	for i := max(0, n-len(t.last)); i < n; i++ {
		t.last[(t.n+int64(i))%int64(len(t.last))] = p[i]
	}
	t.n += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader, so that the bzip2 decoder takes no more than it needs.
func (t *tailReader) ReadByte() (byte, error) {
	b, err := t.src.(io.ByteReader).ReadByte()
	if err == nil {
		t.last[t.n%int64(len(t.last))] = b
		t.n++
	}
	return b, err
}

// at returns a byte of the last 16 that were read.
func (t *tailReader) at(offset int64) byte { return t.last[offset%int64(len(t.last))] }

// drain reads the source to its end and reports whether everything from an offset on, one of the
// last 16, is zero.
func (t *tailReader) drain(from int64) (zero bool, err error) {
	zero = true
	for ; from < t.n; from++ {
		zero = zero && t.at(from) == 0
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := t.src.Read(buf)
		for _, b := range buf[:n] {
			zero = zero && b == 0
		}
		t.n += int64(n)
		if err == io.EOF {
			return zero, nil
		}
		if err != nil {
			return zero, err
		}
	}
}

// zstdReader reads frames one after another, and zero bytes after them.
type zstdReader struct {
	z    *zstd.Decoder
	tail *tailReader
}

// reset continues with another file, or part of one.
func (r *zstdReader) reset(src *Counted) error {
	r.tail.src, r.tail.n = src, src.N
	return r.z.Reset(r.tail)
}

func (r *zstdReader) Read(p []byte) (int, error) {
	n, err := r.z.Read(p)
	if !errors.Is(err, zstd.ErrMagicMismatch) || r.tail.n < 8 {
		return n, err
	}
	at := r.tail.n - 4
	zero, err := r.tail.drain(at)
	switch {
	case err != nil:
		return n, err
	case !zero:
		return n, foreign(Zstd, at)
	}
	return n, io.EOF
}

// bzip2Reader reads streams one after another. What follows them and begins no stream is passed
// over, as bzip2 itself does, and reported by Trailing.
type bzip2Reader struct {
	z        io.Reader
	tail     *tailReader
	trailing int64 // bytes
	ended    bool
}

func (r *bzip2Reader) Read(p []byte) (int, error) {
	if r.ended {
		return 0, io.EOF
	}
	n, err := r.z.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	at := r.streamEnd()
	if at < 0 {
		return n, err
	}
	zero, drainErr := r.tail.drain(at)
	if drainErr != nil {
		return n, drainErr
	}
	r.ended = true
	if !zero {
		r.trailing = r.tail.n - at
	}
	return n, io.EOF
}

// Trailing returns where bytes begin that follow the compressed data of a file, and were skipped, and how many
// there are. text is a decompressor at its end.
func Trailing(text io.Reader) (offset, n int64) {
	if z, ok := text.(*bzip2Reader); ok && z.trailing > 0 {
		return z.tail.n - z.trailing, z.trailing
	}
	return 0, 0
}

// streamEnd returns where a stream ended within the last few bytes, which the decoder took for the
// header of another; -1 if none did. A stream ends with 48 bits of a magic number, 32 of a
// checksum, and up to 7 that fill its last byte.
func (r *bzip2Reader) streamEnd() int64 {
	const trailer, mask, header = 0x177245385090, 1<<48 - 1, 4
	for end := r.tail.n - 1; end >= max(trailerBytes, r.tail.n-header); end-- {
		var bits uint64 // the 7 bytes before the checksum and its neighbour
		for i := end - trailerBytes; i < end-trailerBytes+7; i++ {
			bits = bits<<8 | uint64(r.tail.at(i))
		}
		for fill := range 8 {
			if bits>>fill&mask == trailer {
				return end
			}
		}
	}
	return -1
}

// trailerBytes is the longest stretch of bytes that a bzip2 stream's end touches.
const trailerBytes = 11

// Explain turns a decompressor's error into ours. Errors of the file below it pass unchanged.
func Explain(c Compression, err error, src *Counted, window int64) error {
	var already *fault.Error
	switch {
	case err == nil || err == io.EOF || c == Plain:
		return err
	case src.Err != nil && src.Err != io.EOF:
		return src.Err
	case errors.As(err, &already):
		return err
	}
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fault.Of(cause.Unsupported, "a later zstd frame has a window larger than %s, "+
			"which the first frame does not declare; put that frame first, or pipe `zstd -dc --long=31 FILE` to the source -",
			units.Size(window))
	case errors.Is(err, xz.ErrMemlimit):
		return fault.Of(cause.Unsupported, "a later xz block has a dictionary larger than %s, "+
			"which the first block does not declare; pipe `xz -dc FILE` to the source -", units.Size(window))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, xz.ErrBuf) && src.Err == io.EOF, src.Err == io.EOF &&
		src.N == 0:
		return fault.Of(cause.Truncated, "the %s data ends before its end mark; copy the file again", c)
	}
	return fault.Of(cause.Corrupt, "the %s data is damaged (%v); copy the file again", c, err)
}

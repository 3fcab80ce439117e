package columnar

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// streamBytes is the buffer of a stream.
const streamBytes = 16 << 10

// A buffer is where a buffer of a record batch lies.
type buffer struct{ offset, length int64 }

// A stream reads a buffer of a record batch from its beginning on, decompressed.
type stream struct {
	r     *bufio.Reader
	left  int64 // bytes to come; what is decompressed must not be fewer
	read  bool  // all bytes of the last buffer were read
	zstd  *zstd.Decoder
	lz4   *lz4.Reader
	value []byte // the last one read
	ahead *decompress.ReadAhead
}

const (
	compressionNone = -1
	compressionLZ4  = 0
	compressionZstd = 1
)

// open goes to a buffer. An empty one has any number of zeros, as where nothing is null.
func (s *stream) open(f *arrowFile, b *batch, buf buffer, compression int) error {
	left, packed, err := f.bufferLength(b, buf, compression)
	if err != nil {
		return err
	}
	s.read = s.r != nil && s.left == 0
	s.left = left
	if compression != compressionNone && buf.length > 0 {
		if buf.length < 8 {
			return corrupt("a buffer ends early")
		}
		buf = buffer{buf.offset + 8, buf.length - 8} // after the length
	}
	section := io.NewSectionReader(f.at, b.body()+buf.offset, buf.length)
	var src io.Reader = section
	if !packed && f.leads(s, buf.length) {
		src = s.lead(shared(f.at), section, b.body()+buf.offset, buf.length)
	}
	if packed && compression == compressionZstd {
		var frame [zstdHeader]byte
		got, _ := section.ReadAt(frame[:], 0) // what is wrong with it is met again in reading
		if _, err := zstdNeeds(frame[:got], left); err != nil {
			return err
		}
	}
	if packed {
		if src, err = s.decompressor(section, compression, f.window); err != nil {
			return err
		}
	}
	if s.r == nil {
		s.r = bufio.NewReaderSize(src, streamBytes)
	} else {
		s.r.Reset(src)
	}
	return nil
}

// leads reports whether a stream may read a buffer of some length on goroutines of its own.
func (f *arrowFile) leads(s *stream, length int64) bool {
	if f.options.Remote || length < decompress.ReadAheadBytes || s.ahead == nil && f.options.Spare.Bytes < decompress.ReadAheadBytes {
		return false
	}
	if s.ahead == nil {
		f.options.Spare.Bytes -= decompress.ReadAheadBytes
	}
	return true
}

// lead begins to read a buffer, which section reads, too.
func (s *stream) lead(file io.ReaderAt, section *io.SectionReader, offset, length int64) io.Reader {
	stripes := decompress.Stripes(file, offset, offset+length, func() error { return nil })
	if s.ahead == nil {
		s.ahead = decompress.NewReadAhead(1, "file", stripes...)
	} else {
		s.ahead.Restart(stripes...)
	}
	return &leading{ahead: s.ahead, section: section}
}

// A leading reads part of a file ahead. What fails there is read again, so that the failure is met and noted here.
type leading struct {
	ahead   *decompress.ReadAhead
	section *io.SectionReader
	at      int64
	failed  bool
}

func (l *leading) Read(p []byte) (n int, err error) {
	if !l.failed {
		n, err = l.ahead.Read(p)
		l.failed = err != nil && err != io.EOF
	}
	if l.failed && n == 0 {
		n, err = l.section.ReadAt(p, l.at)
	}
	l.at += int64(n)
	return n, err
}

func (s *stream) decompressor(src io.Reader, compression int, window int64) (io.Reader, error) {
	switch compression {
	case compressionLZ4:
		if s.lz4 != nil && s.read {
			s.r.Peek(1) // its end, at which the decoder gives its blocks back for the next buffer
		}
		if s.lz4 == nil {
			s.lz4 = lz4.NewReader(src)
		} else {
			s.lz4.Reset(src)
		}
		return s.lz4, nil
	case compressionZstd:
		var err error
		if s.zstd == nil {
			s.zstd, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(uint64(max(window, 1<<20))), zstd.WithDecoderMaxMemory(math.MaxInt64))
		} else {
			err = s.zstd.Reset(src)
		}
		return s.zstd, damagedStream(err)
	}
	return nil, unsupported("its buffers are compressed by codec %d", compression)
}

func (s *stream) close() {
	if s.ahead != nil {
		s.ahead.Stop()
	}
	if s.zstd != nil {
		s.zstd.Close()
	}
}

// damagedStream is the error of a buffer that cannot be decompressed.
func damagedStream(err error) error {
	var already *fault.Error
	switch {
	case err == nil, errors.As(err, &already):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corrupt("a buffer has fewer bytes than it says")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return &SizeError{"a compressed buffer", 64 << 20}
	case errors.Is(err, lz4.ErrInvalidSourceShortBuffer), errors.Is(err, lz4.ErrInvalidBlockChecksum),
		errors.Is(err, lz4.ErrInvalidFrameChecksum), errors.Is(err, lz4.ErrInvalidFrame):
		return corrupt("the lz4 data of a buffer is damaged (%v)", err)
	}
	return corrupt("the data of a buffer is damaged (%v)", err)
}

// take returns the next n bytes, valid until the next call. They are held in memory.
func (s *stream) take(n int64) ([]byte, error) {
	if n > s.left {
		return nil, corrupt("a buffer has fewer bytes than its values take")
	}
	s.left -= n
	if n <= int64(s.r.Size()) {
		b, err := s.r.Peek(int(n))
		if err != nil {
			return nil, damagedStream(err)
		}
		s.r.Discard(int(n)) // they are there
		return b, nil
	}
	if int64(cap(s.value)) < n {
		s.value = make([]byte, n)
	}
	s.value = s.value[:n]
	_, err := io.ReadFull(s.r, s.value)
	return s.value, damagedStream(err)
}

// skip passes over n bytes.
func (s *stream) skip(n int64) error {
	if n > s.left {
		return corrupt("a buffer has fewer bytes than its values take")
	}
	s.left -= n
	for n > 0 {
		m, err := s.r.Discard(int(min(n, 1<<20)))
		if n -= int64(m); err != nil {
			return damagedStream(err)
		}
	}
	return nil
}

// streamWindow returns what decompressing a buffer takes, by the header of its frame.
func (f *arrowFile) streamWindow(b *batch, buf buffer, compression int) (int64, error) {
	var head [32]byte
	n := min(int64(len(head)), buf.length)
	if compression == compressionNone || n < 16 || buf.offset < 0 || buf.offset > b.bodySize-buf.length {
		return 0, nil
	}
	if err := f.readAt(head[:n], b.body()+buf.offset); err != nil {
		return 0, err
	}
	length := int64(binary.LittleEndian.Uint64(head[:]))
	if length < 0 {
		return 0, nil
	}
	if compression == compressionLZ4 {
		return 2<<(2*(head[13]>>4&7)+8) + 128<<10, nil
	}
	window, err := zstdNeeds(head[8:n], length)
	if err != nil {
		return 0, nil // reported when the batch is read
	}
	return window + 2<<20, nil
}

// zstdHeader is at least as long as the header of a frame.
const zstdHeader = 24

// zstdNeeds returns the window of a frame that holds length bytes, from its first bytes. A window
// that no writer asks for is an error: it would take memory without limit.
func zstdNeeds(head []byte, length int64) (int64, error) {
	var h zstd.Header
	if h.Decode(head) != nil {
		return 0, nil // reading says what is wrong
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if h.HasFCS && h.FrameContentSize > uint64(length) || window > 8<<20 && window > 2*uint64(length) {
		return 0, corrupt("a compressed buffer is shorter than its frame says")
	}
	return int64(min(window, 1<<31)), nil
}

// readWholeStream reads a stream that is all of the file, but for zeros after it.
func (f *arrowFile) readWholeStream() error {
	end, err := f.readStream(0)
	if err != nil {
		return err
	}
	after := make([]byte, min(f.size-end, 4<<10))
	if err := f.readAt(after, end); err != nil {
		return err
	}
	if len(bytes.Trim(after, "\x00")) > 0 {
		return fault.Of(ErrSeveral, "bytes follow the end mark of the stream, from byte %d on; keep what comes before with "+
			"`head -c %[1]d`, and another stream in a file of its own", end)
	}
	return nil
}

// readStream reads the messages from an offset on, and returns where their end mark ends.
func (f *arrowFile) readStream(offset int64) (end int64, err error) {
	for {
		m, from, size, err := f.message(offset)
		if err == io.EOF {
			end = from
			break
		}
		if err != nil {
			return 0, err
		}
		body, bodySize := from+int64(size), m.Long(3)
		if bodySize < 0 || bodySize > f.size-body {
			return 0, corrupt("the file ends within a record batch, which begins at byte %d", offset)
		}
		if err := f.note(m, from, size, body, bodySize); err != nil {
			return 0, err
		}
		offset = body + (bodySize+7)/8*8
	}
	if !f.isOpen {
		return 0, corrupt("the stream has no schema")
	}
	return end, nil
}

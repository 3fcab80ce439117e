// Package zipfile reads zip archives by their directory, entry by entry, in the directory's order: neither the
// directory nor a member is ever held as a whole. Package archive/zip holds the directory.
package zipfile

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

const (
	// ReaderBytes is the memory of a Reader: two directory buffers, inflater.
	ReaderBytes = 512 << 10
	bufferBytes = 16 << 10
	maxName     = 4 << 10
	zstdWindow  = 8 << 20
)

// An Entry is a line of the directory.
type Entry struct {
	Name   string
	Folder bool
	Size   int64 // bytes of its text

	method    uint16
	encrypted bool
	crc       uint32
	stored    int64
	header    int64 // where its local header begins
}

// A Directory reads the directory's entries in order.
type Directory struct {
	r    *bufio.Reader
	left uint64
}

// directoryError is the end of a directory before its last entry, or the failure of the file.
func directoryError(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return Corrupt("its directory ends early")
	}
	return err
}

// Corrupt returns the error of an archive that contradicts itself.
func Corrupt(format string, args ...any) error {
	return fault.Of(cause.Corrupt, "the zip archive is damaged: "+format+"; copy the file again", args...)
}

// OpenDirectory finds the directory.
func OpenDirectory(at io.ReaderAt, size int64) (*Directory, error) {
	const endBytes, locatorBytes, end64Bytes = 22, 20, 56
	tail := make([]byte, min(size, endBytes+math.MaxUint16+locatorBytes))
	from := size - int64(len(tail))
	if _, err := at.ReadAt(tail, from); err != nil && err != io.EOF {
		return nil, err
	}
	i := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if i < 0 || i+endBytes > len(tail) {
		return nil, fault.Of(cause.Truncated, "the zip archive ends before its directory; copy the file again")
	}
	end := tail[i:]
	n := uint64(binary.LittleEndian.Uint16(end[10:]))
	length, offset := uint64(binary.LittleEndian.Uint32(end[12:])), uint64(binary.LittleEndian.Uint32(end[16:]))
	endAt := from + int64(i)
	if i >= locatorBytes && bytes.HasPrefix(tail[i-locatorBytes:], []byte("PK\x06\x07")) {
		end64 := make([]byte, end64Bytes)
		at64 := int64(binary.LittleEndian.Uint64(tail[i-locatorBytes+8:]))
		if at64 < 0 || at64 > size-end64Bytes {
			return nil, Corrupt("its directory lies outside the file")
		}
		if _, err := at.ReadAt(end64, at64); err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(end64, []byte("PK\x06\x06")) {
			return nil, Corrupt("the end of its directory cannot be found")
		}
		n, length = binary.LittleEndian.Uint64(end64[32:]), binary.LittleEndian.Uint64(end64[40:])
		offset, endAt = binary.LittleEndian.Uint64(end64[48:]), at64
	}
	if length > uint64(endAt) || offset > uint64(endAt)-length {
		return nil, Corrupt("its directory lies outside the file")
	}
	if before := uint64(endAt) - offset - length; before > 0 {
		return nil, fault.Of(cause.Corrupt, "two files are in one: %d bytes stand before the zip archive; keep each in a "+
			"file of its own, this archive with `tail -c +%d`", before, before+1)
	}
	if after := end[min(len(end), endBytes+int(binary.LittleEndian.Uint16(end[20:]))):]; len(bytes.Trim(after, "\x00")) > 0 {
		return nil, fault.Of(cause.Corrupt, "bytes follow the zip archive, from byte %d of the file on; keep what comes "+
			"before with `head -c %[1]d`", size-int64(len(after)))
	}
	section := io.NewSectionReader(at, int64(offset), int64(length))
	return &Directory{r: bufio.NewReaderSize(section, bufferBytes), left: n}, nil
}

// Next returns the next entry, io.EOF after the last one.
func (d *Directory) Next() (e Entry, err error) {
	if d.left == 0 {
		return e, io.EOF
	}
	d.left--
	var fixed [46]byte
	if _, err := io.ReadFull(d.r, fixed[:]); err != nil {
		return e, directoryError(err)
	}
	le := binary.LittleEndian
	if string(fixed[:4]) != "PK\x01\x02" {
		return e, Corrupt("its directory has an entry without a mark")
	}
	nameLen, extraLen, commentLen := int(le.Uint16(fixed[28:])), int(le.Uint16(fixed[30:])), int(le.Uint16(fixed[32:]))
	rest := make([]byte, nameLen+extraLen)
	if _, err := io.ReadFull(d.r, rest); err != nil {
		return e, directoryError(err)
	}
	if _, err := d.r.Discard(commentLen); err != nil {
		return e, directoryError(err)
	}
	e = Entry{Name: strings.ToValidUTF8(string(rest[:min(nameLen, maxName)]), "\uFFFD"),
		method: le.Uint16(fixed[10:]), encrypted: fixed[8]&1 != 0, crc: le.Uint32(fixed[16:]),
		stored: int64(le.Uint32(fixed[20:])), Size: int64(le.Uint32(fixed[24:])), header: int64(le.Uint32(fixed[42:]))}
	e.Folder = strings.HasSuffix(e.Name, "/")
	e.large(rest[nameLen:])
	if e.Size < 0 || e.stored < 0 || e.header < 0 {
		return e, Corrupt("%s has an impossible size", e.Name)
	}
	return e, nil
}

// large takes the sizes that do not fit 32 bits from the extra field.
func (e *Entry) large(extra []byte) {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if extra = extra[4:]; n > len(extra) {
			return
		}
		field := extra[:n]
		extra = extra[n:]
		if id != 1 {
			continue
		}
		for _, v := range []*int64{&e.Size, &e.stored, &e.header} {
			if *v == math.MaxUint32 && len(field) >= 8 {
				*v = int64(le.Uint64(field))
				field = field[8:]
			}
		}
	}
}

// A Reader reads the members that Wanted chooses one after another, as if they were one file. It
// checks the size and checksum of each.
type Reader struct {
	Dir      *Directory
	Wanted   func(*Entry) bool
	Separate bool // each member ends with io.EOF, and Begin opens the next

	at    io.ReaderAt
	size  int64
	count *decompress.Counted // counts how much of the file was read

	entry    Entry
	member   io.Reader // nil between two
	close    func()
	left     int64
	sum      hash.Hash32
	buf      *bufio.Reader
	err      error
	inflater io.Reader
}

// NewReader opens an archive of the given size. count notes what is read of it.
func NewReader(at io.ReaderAt, size int64, count *decompress.Counted,
	wanted func(*Entry) bool) (*Reader, error) {
	dir, err := OpenDirectory(at, size)
	if err != nil {
		return nil, err
	}
	return &Reader{at: at, size: size, Dir: dir, Wanted: wanted, count: count, close: func() {},
		sum: crc32.NewIEEE()}, nil
}

// Close releases the decompressor. The file belongs to the caller.
func (z *Reader) Close() { z.close() }

// Read implements io.Reader.
func (z *Reader) Read(p []byte) (int, error) {
	for z.err == nil {
		if z.member == nil && z.Separate {
			return 0, io.EOF
		}
		if z.member == nil {
			z.err = z.nextMember()
			continue
		}
		n, err := z.member.Read(p[:min(int64(len(p)), z.left+1)])
		if int64(n) > z.left {
			n, err = int(z.left), Corrupt("%s is longer than its directory says", z.entry.Name)
		}
		z.left -= int64(n)
		z.sum.Write(p[:n]) // never fails
		if err == io.EOF {
			err = z.endMember()
		}
		if err != nil {
			z.err = z.explain(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, z.err
}

func (z *Reader) explain(err error) error {
	var already *fault.Error
	if errors.As(err, &already) || z.count.Err != nil && z.count.Err != io.EOF {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Of(cause.Truncated, "%s in the zip archive ends early; copy the file again", z.entry.Name)
	}
	return Corrupt("%s: %v", z.entry.Name, err)
}

// nextMember opens the next member that is wanted.
func (z *Reader) nextMember() error {
	for {
		e, err := z.Dir.Next()
		if err != nil {
			return err
		}
		if !z.Wanted(&e) {
			continue
		}
		z.entry = e
		return z.open()
	}
}

// Begin opens a member, in place of the one that is read.
func (z *Reader) Begin(e Entry) error {
	z.entry, z.member, z.err = e, nil, nil
	z.err = z.open()
	return z.err
}

// End reads what is left of the member and compares its checksum.
func (z *Reader) End() error {
	var buf [1]byte
	for {
		if n, err := z.Read(buf[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		} else if n > 0 {
			return Corrupt("%s is longer than its directory says", z.entry.Name)
		}
	}
}

func (z *Reader) open() error {
	e := &z.entry
	var local [30]byte
	if e.header > z.size-int64(len(local)) {
		return Corrupt("%s begins outside the file", e.Name)
	}
	if _, err := z.at.ReadAt(local[:], e.header); err != nil {
		return err
	}
	if string(local[:4]) != "PK\x03\x04" {
		return Corrupt("%s does not begin where its directory says", e.Name)
	}
	from := e.header + int64(len(local)) + int64(binary.LittleEndian.Uint16(local[26:])) +
		int64(binary.LittleEndian.Uint16(local[28:]))
	if from > z.size || e.stored > z.size-from {
		return fault.Of(cause.Truncated, "the zip archive ends within %s; copy the file again", e.Name)
	}
	if z.buf == nil {
		z.buf = bufio.NewReaderSize(nil, bufferBytes)
	}
	z.buf.Reset(countingReader{io.NewSectionReader(z.at, from, e.stored), z.count})
	z.left = e.Size
	z.sum.Reset()
	z.close()
	z.close = func() {}
	switch {
	case e.encrypted:
		return fault.Of(cause.Unsupported,
			"%s in the zip archive is encrypted; unpack it with `unzip` and name the folder",
			e.Name)
	case e.method == 0:
		z.member = z.buf
	case e.method == 8 && z.inflater != nil:
		z.member = z.inflater
		return z.inflater.(flate.Resetter).Reset(z.buf, nil)
	case e.method == 8:
		z.inflater = flate.NewReader(z.buf)
		z.member = z.inflater
	case e.method == 12:
		z.member = bzip2.NewReader(z.buf)
	case e.method == 93:
		d, err := zstd.NewReader(z.buf, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return err
		}
		z.member, z.close = d, d.Close
	default:
		return fault.Of(cause.Unsupported, "%s in the zip archive is compressed by method %d, which is not read; "+
			"unpack it with `unzip` and name the folder", e.Name, e.method)
	}
	return nil
}

func (z *Reader) endMember() error {
	z.member = nil
	switch {
	case z.left > 0:
		return fault.Of(cause.Truncated, "%s in the zip archive ends early; copy the file again", z.entry.Name)
	case z.sum.Sum32() != z.entry.crc:
		return Corrupt("the checksum of %s differs", z.entry.Name)
	}
	return nil
}

// A countingReader counts what is read of a part of the file.
type countingReader struct {
	*io.SectionReader
	count *decompress.Counted
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.SectionReader.Read(p)
	if r.count.N += int64(n); err != nil && err != io.EOF {
		r.count.Err = err
	}
	return n, err
}

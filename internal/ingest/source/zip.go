package source

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

// A zip archive is read by its directory, entry by entry, in the directory's order: neither the
// directory nor a member is ever held as a whole.

const (
	zipBytes      = 512 << 10 // of a zipReader: two directory buffers, inflater
	zipBuffer     = 16 << 10
	maxZipName    = 4 << 10
	zipZstdWindow = 8 << 20
)

// A zipEntry is a line of the directory.
type zipEntry struct {
	name         string
	method       uint16
	encrypted    bool
	folder       bool
	crc          uint32
	stored, size int64
	header       int64 // where its local header begins
}

// A zipDirectory reads the directory's entries in order.
type zipDirectory struct {
	r    *bufio.Reader
	left uint64
}

// directoryError is the end of a directory before its last entry, or the failure of the file.
func directoryError(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return zipCorrupt("its directory ends early")
	}
	return err
}

func zipCorrupt(format string, args ...any) error {
	return fault.Of(cause.Corrupt, "the zip archive is damaged: "+format+"; copy the file again", args...)
}

// openZip finds the directory.
func openZip(at io.ReaderAt, size int64) (*zipDirectory, error) {
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
			return nil, zipCorrupt("its directory lies outside the file")
		}
		if _, err := at.ReadAt(end64, at64); err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(end64, []byte("PK\x06\x06")) {
			return nil, zipCorrupt("the end of its directory cannot be found")
		}
		n, length = binary.LittleEndian.Uint64(end64[32:]), binary.LittleEndian.Uint64(end64[40:])
		offset, endAt = binary.LittleEndian.Uint64(end64[48:]), at64
	}
	if length > uint64(endAt) || offset > uint64(endAt)-length {
		return nil, zipCorrupt("its directory lies outside the file")
	}
	section := io.NewSectionReader(at, int64(offset), int64(length))
	return &zipDirectory{r: bufio.NewReaderSize(section, zipBuffer), left: n}, nil
}

// next returns the next entry, io.EOF after the last one.
func (d *zipDirectory) next() (e zipEntry, err error) {
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
		return e, zipCorrupt("its directory has an entry without a mark")
	}
	nameLen, extraLen, commentLen := int(le.Uint16(fixed[28:])), int(le.Uint16(fixed[30:])), int(le.Uint16(fixed[32:]))
	rest := make([]byte, nameLen+extraLen)
	if _, err := io.ReadFull(d.r, rest); err != nil {
		return e, directoryError(err)
	}
	if _, err := d.r.Discard(commentLen); err != nil {
		return e, directoryError(err)
	}
	e = zipEntry{name: strings.ToValidUTF8(string(rest[:min(nameLen, maxZipName)]), "\uFFFD"),
		method: le.Uint16(fixed[10:]), encrypted: fixed[8]&1 != 0, crc: le.Uint32(fixed[16:]),
		stored: int64(le.Uint32(fixed[20:])), size: int64(le.Uint32(fixed[24:])), header: int64(le.Uint32(fixed[42:]))}
	e.folder = strings.HasSuffix(e.name, "/")
	e.large(rest[nameLen:])
	if e.size < 0 || e.stored < 0 || e.header < 0 {
		return e, zipCorrupt("%s has an impossible size", e.name)
	}
	return e, nil
}

// large takes the sizes that do not fit 32 bits from the extra field.
func (e *zipEntry) large(extra []byte) {
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
		for _, v := range []*int64{&e.size, &e.stored, &e.header} {
			if *v == math.MaxUint32 && len(field) >= 8 {
				*v = int64(le.Uint64(field))
				field = field[8:]
			}
		}
	}
}

// A zipReader reads the members that wanted chooses one after another, as if they were one file. It
// checks the size and checksum of each.
type zipReader struct {
	at     io.ReaderAt
	size   int64
	dir    *zipDirectory
	wanted func(*zipEntry) bool
	count  *decompress.Counted // counts how much of the file was read

	entry    zipEntry
	member   io.Reader // nil between two
	close    func()
	left     int64
	sum      hash.Hash32
	raw      io.LimitedReader
	buf      *bufio.Reader
	err      error
	inflater io.Reader
	separate bool // each member ends with io.EOF, and begin opens the next
}

// newZipReader opens an archive.
func newZipReader(at io.ReaderAt, size int64, count *decompress.Counted, wanted func(*zipEntry) bool) (*zipReader, error) {
	dir, err := openZip(at, size)
	if err != nil {
		return nil, err
	}
	return &zipReader{at: at, size: size, dir: dir, wanted: wanted, count: count, close: func() {},
		sum: crc32.NewIEEE()}, nil
}

func (z *zipReader) Read(p []byte) (int, error) {
	for z.err == nil {
		if z.member == nil && z.separate {
			return 0, io.EOF
		}
		if z.member == nil {
			z.err = z.nextMember()
			continue
		}
		n, err := z.member.Read(p[:min(int64(len(p)), z.left+1)])
		if int64(n) > z.left {
			n, err = int(z.left), zipCorrupt("%s is longer than its directory says", z.entry.name)
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

func (z *zipReader) explain(err error) error {
	var already *fault.Error
	if errors.As(err, &already) || z.count.Err != nil && z.count.Err != io.EOF {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Of(cause.Truncated, "%s in the zip archive ends early; copy the file again", z.entry.name)
	}
	return zipCorrupt("%s: %v", z.entry.name, err)
}

// nextMember opens the next member that is wanted.
func (z *zipReader) nextMember() error {
	for {
		e, err := z.dir.next()
		if err != nil {
			return err
		}
		if !z.wanted(&e) {
			continue
		}
		z.entry = e
		return z.open()
	}
}

// begin opens a member, in place of the one that is read.
func (z *zipReader) begin(e zipEntry) error {
	z.entry, z.member, z.err = e, nil, nil
	z.err = z.open()
	return z.err
}

// end reads what is left of the member and compares its checksum.
func (z *zipReader) end() error {
	var buf [1]byte
	for {
		if n, err := z.Read(buf[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		} else if n > 0 {
			return zipCorrupt("%s is longer than its directory says", z.entry.name)
		}
	}
}

func (z *zipReader) open() error {
	e := &z.entry
	var local [30]byte
	if e.header > z.size-int64(len(local)) {
		return zipCorrupt("%s begins outside the file", e.name)
	}
	if _, err := z.at.ReadAt(local[:], e.header); err != nil {
		return err
	}
	if string(local[:4]) != "PK\x03\x04" {
		return zipCorrupt("%s does not begin where its directory says", e.name)
	}
	from := e.header + int64(len(local)) + int64(binary.LittleEndian.Uint16(local[26:])) +
		int64(binary.LittleEndian.Uint16(local[28:]))
	if from > z.size || e.stored > z.size-from {
		return fault.Of(cause.Truncated, "the zip archive ends within %s; copy the file again", e.name)
	}
	z.raw = io.LimitedReader{R: &atReader{z.at, from, z.count}, N: e.stored}
	if z.buf == nil {
		z.buf = bufio.NewReaderSize(&z.raw, zipBuffer)
	}
	z.buf.Reset(&z.raw)
	z.left = e.size
	z.sum.Reset()
	z.close()
	z.close = func() {}
	switch {
	case e.encrypted:
		return fault.Of(cause.Unsupported,
			"%s in the zip archive is encrypted; unpack it with `unzip` and name the folder",
			e.name)
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
			zstd.WithDecoderMaxWindow(zipZstdWindow))
		if err != nil {
			return err
		}
		z.member, z.close = d, d.Close
	default:
		return fault.Of(cause.Unsupported, "%s in the zip archive is compressed by method %d, which is not read; "+
			"unpack it with `unzip` and name the folder", e.name, e.method)
	}
	return nil
}

func (z *zipReader) endMember() error {
	z.member = nil
	switch {
	case z.left > 0:
		return fault.Of(cause.Truncated, "%s in the zip archive ends early; copy the file again", z.entry.name)
	case z.sum.Sum32() != z.entry.crc:
		return zipCorrupt("the checksum of %s differs", z.entry.name)
	}
	return nil
}

// An atReader reads on from an offset, counting.
type atReader struct {
	at     io.ReaderAt
	offset int64
	count  *decompress.Counted
}

func (r *atReader) Read(p []byte) (int, error) {
	n, err := r.at.ReadAt(p, r.offset)
	r.offset += int64(n)
	r.count.N += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	if err != nil && err != io.EOF {
		r.count.Err = err
	}
	return n, err
}

package origins

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sort"
)

// File finds documents in a file of origins. It is safe for concurrent use.
type File struct {
	r     io.ReaderAt
	size  int64
	pages int
}

// Open checks the head of a file of the given size.
func Open(r io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, len(Magic))
	if size < int64(len(Magic)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, size)
	}
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, err
	}
	pages := (size - int64(len(Magic)) + PageBytes - 1) / PageBytes
	if string(head) != Magic || pages > math.MaxInt32 {
		return nil, fmt.Errorf("%w: it does not begin with the magic", ErrCorrupt)
	}
	return &File{r: r, size: size, pages: int(pages)}, nil
}

// Find returns the origin of a document; ok is false if the file has no such ordinal.
func (f *File) Find(ordinal int64) (o Origin, ok bool, err error) {
	var head [headBytes]byte
	after := sort.Search(f.pages, func(i int) bool {
		if _, readErr := f.r.ReadAt(head[:], int64(len(Magic))+int64(i)*PageBytes); readErr != nil && err == nil {
			err = readErr
		}
		return int64(binary.LittleEndian.Uint64(head[8:])) > ordinal
	})
	if err != nil || after == 0 {
		return o, false, err
	}
	page, err := f.page(after - 1)
	if err != nil {
		return o, false, err
	}
	err = page.scan(false, func(run Run) error {
		if ok = run.Ordinal <= ordinal && ordinal < run.Ordinal+run.N; ok {
			o = Origin{run.Name, run.Record + run.Step*(ordinal-run.Ordinal)}
		}
		if run.Ordinal+run.N > ordinal {
			return errPassed
		}
		return nil
	})
	if err != nil && err != errPassed {
		return o, false, fmt.Errorf("%w: page %d", err, after-1)
	}
	return o, ok, nil
}

// check checks the pages whose heads Find reads to look for a document: a damaged head leads to another page.
func (f *File) check(ordinal int64) (err error) {
	sort.Search(f.pages, func(i int) bool {
		p, pageErr := f.page(i)
		err = cmp.Or(err, pageErr)
		return err != nil || p.next > ordinal
	})
	return err
}

// errPassed ends the search for a document.
var errPassed = errors.New("it is not after this run")

// page reads and checks a page.
func (f *File) page(i int) (*page, error) {
	at := int64(len(Magic)) + int64(i)*PageBytes
	data := make([]byte, min(PageBytes, f.size-at))
	if _, err := f.r.ReadAt(data, at); err != nil && err != io.EOF {
		return nil, err
	}
	p, err := newPage(data)
	if err != nil {
		err = fmt.Errorf("%w: page %d", err, i)
	}
	return p, err
}

// A page is the state of decoding a page.
type page struct {
	next   int64 // ordinal of the next document
	record int64 // the last document's
	name   string
	rest   []byte
	bad    bool
}

// newPage checks the bytes of a page.
func newPage(data []byte) (*page, error) {
	if len(data) < headBytes {
		return nil, fmt.Errorf("%w: a page of %d bytes", ErrCorrupt, len(data))
	}
	used := binary.LittleEndian.Uint32(data[4:])
	if int64(used) > int64(len(data)) || used < headBytes ||
		crc32.ChecksumIEEE(data[4:used]) != binary.LittleEndian.Uint32(data) {
		return nil, fmt.Errorf("%w: the checksum of a page differs", ErrCorrupt)
	}
	return &page{next: int64(binary.LittleEndian.Uint64(data[8:])), record: int64(binary.LittleEndian.Uint64(data[16:])),
		rest: data[headBytes:used]}, nil
}

func (p *page) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *page) bytes(n uint64) string {
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return ""
	}
	s := string(p.rest[:n])
	p.rest = p.rest[n:]
	return s
}

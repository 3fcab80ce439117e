package columnar

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// What a parquet footer says, as far as it is used.

// parquetFile is the metadata of a file. It has the wanted columns alone, and of the row groups their
// chunks.
type parquetFile struct {
	meter
	columnList
	at      io.ReaderAt
	size    int64
	options Options
	footer  int64 // its length

	hasSchema bool
	leaves    int     // how many all columns have
	spans     []span  // the wanted ones
	numWanted int     // how many are wanted
	wanted    []*node // the wanted leaves
	top       []*node // the wanted columns
	tests     []test
	groups    blocks[rowGroup]
	numGroups int
	rows      int64

	most []int64 // once not everything is kept: what reading each wanted leaf takes at most
}

const (
	// ParquetMagic begins and ends a file of parquet.
	ParquetMagic = "PAR1"
	// footerWindow is what of a footer is in memory at once.
	footerWindow = 64 << 10
)

// findParquetFooter returns where the footer begins and ends.
func findParquetFooter(at io.ReaderAt, size int64) (from, end int64, err error) {
	if size < 12 {
		return 0, 0, corrupt("the file is too short for parquet")
	}
	var tail [8]byte
	if err := readAt(at, tail[:], size-8); err != nil {
		return 0, 0, err
	}
	switch string(tail[4:]) {
	case ParquetMagic:
	case "PARE":
		return 0, 0, errEncrypted
	default:
		return 0, 0, corrupt("the file ends without its footer")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 {
		return 0, 0, corrupt("its footer is longer than the file")
	}
	var begins [1]byte
	if err := readAt(at, begins[:], size-8-n); err != nil {
		return 0, 0, err
	}
	if begins[0] != thriftI32|1<<4 { // the version, which every writer puts first
		return 0, 0, corrupt("its footer does not begin where its length says")
	}
	return size - 8 - n, size - 8, nil
}

// readAt fills p.
func readAt(at io.ReaderAt, p []byte, offset int64) error {
	n, err := at.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		return corrupt("the file ends early, at byte %d", offset+int64(n))
	}
	return err
}

// take counts n bytes of metadata. Once that is more than may be kept, what was kept is dropped, and
// the rest is counted.
func (f *parquetFile) take(n int64) {
	if f.meter.take(n) || f.most != nil {
		return
	}
	f.most = make([]int64, 0, maxLeaves+1)
	for i := range f.groups.len() {
		f.measure(f.groups.at(i).chunks)
	}
	f.groups, f.wanted, f.top = blocks[rowGroup]{}, nil, nil
}

// parse reads the footer.
func (f *parquetFile) parse(from, end int64) error {
	c := &compact{buf: make([]byte, min(footerWindow, end-from))}
	c.begin(f.at, from, end)
	f.rows = -1
	c.fields(func(id int, kind byte) {
		switch {
		case id == 2 && kind == thriftList:
			if n, _ := c.list(); c.err == nil {
				f.schema(c, n)
				f.openTests()
			}
		case id == 3 && kind == thriftI64:
			f.rows = c.varint()
		case id == 4 && kind == thriftList:
			if !f.hasSchema {
				c.fail("its footer has no schema")
			}
			n, _ := c.list()
			for i := 0; i < n && c.err == nil; i++ {
				f.rowGroup(c)
			}
		case id == 5 && kind == thriftList:
			n, _ := c.list()
			for i := 0; i < n && c.err == nil; i++ {
				c.keyValue()
			}
		case id == 6 && kind == thriftBinary:
			if by, cut := c.text(nil, maxKeyBytes); c.err == nil && !printable(by, cut) {
				c.fail("its footer names a writer that is not text")
			}
		case id == 7 && kind == thriftList:
			n, _ := c.list()
			f.columnOrders(c, n)
		case id == 8:
			c.setErr(errEncrypted)
		default:
			c.skip(kind)
		}
	})
	if c.err != nil {
		return c.err
	}
	if !f.hasSchema {
		return corrupt("its footer has no schema")
	}
	if f.over() {
		return f.tooLarge()
	}
	f.endTests()
	if err := f.check(); err != nil {
		return err
	}
	return f.checkBefore(from - c.last)
}

// checkBefore refuses a file that stands after another one of some length: its footer would find the other's pages
// in the places of its own.
func (f *parquetFile) checkBefore(length int64) error {
	var border [2 * len(ParquetMagic)]byte
	if length < 12 || length > f.size-12 {
		return nil
	}
	if err := readAt(f.at, border[:], length-int64(len(ParquetMagic))); err != nil {
		return err
	}
	if string(border[:]) == ParquetMagic+ParquetMagic {
		return errBefore
	}
	return nil
}

// tooLarge returns the error that the metadata takes more than it may, with what all of reading takes.
func (f *parquetFile) tooLarge() error {
	n := f.held + footerWindow + codecBytes
	for slot := range f.numWanted {
		n += leafBytes
		if slot < len(f.most) {
			n += f.most[slot]
		}
		if f.options.Remote {
			n += usualPages
		}
	}
	return &SizeError{f.describe(), n}
}

func (f *parquetFile) describe() string {
	return fmt.Sprintf("its footer of %d bytes (columns: %d, wanted: %d, row groups: %d)",
		f.footer, f.leaves, f.numWanted, f.numGroups)
}

func (c *compact) setErr(err error) {
	if c.err == nil {
		c.err = err
	}
}

// check compares what the footer says with itself and with the file.
func (f *parquetFile) check() error {
	var rows int64
	for i := range f.groups.len() {
		g := f.groups.at(i)
		if g.rows < 0 || rows > math.MaxInt64-g.rows {
			return corrupt("row group %d has an impossible number of rows", i)
		}
		rows += g.rows
		if len(g.chunks) != len(f.wanted) {
			return corrupt("row group %d has no columns", i)
		}
		for j := range g.chunks {
			ch := &g.chunks[j]
			if ch.values < 0 || ch.size < 0 || ch.offset < 0 || ch.offset > f.size-ch.size || ch.uncompressed < 0 {
				return corrupt("column %s of row group %d lies outside the file", f.wanted[j].path, i)
			}
		}
	}
	if f.rows != rows {
		return corrupt("its footer counts %d rows, its row groups %d", f.rows, rows)
	}
	return nil
}

// checkPage reads the first page header of a column of the first row group, wanted or not: a file that
// is damaged there is not taken for a sound one.
func (f *parquetFile) checkPage(l *leafReader, ch *chunk, path []byte) error {
	if ch.values <= 0 || ch.offset < 0 || ch.size < 0 || ch.offset > f.size-ch.size {
		return nil
	}
	l.ch, l.pos, l.end = ch, ch.offset, ch.offset+ch.size
	h, err := l.header()
	if err == nil && (h.kind < pageData || h.kind > pageDataV2) {
		err = corrupt("a page of an unknown kind")
	}
	if err != nil {
		return fmt.Errorf("row group 1, column %s, its first page: %w", path, err)
	}
	return nil
}

// maxKeyBytes is how much of a key is looked at.
const maxKeyBytes = 4 << 10

// keyValue checks an entry that the writer added: Arrow's schema is text in base64.
func (c *compact) keyValue() {
	var key []byte
	var cut bool
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			key, cut = c.text(key[:0], maxKeyBytes)
		case id == 2 && kind == thriftBinary && string(key) == "ARROW:schema":
			c.binary(func(piece []byte) {
				if bytes.ContainsFunc(piece, func(r rune) bool { return !strings.ContainsRune(base64Digits, r) }) {
					c.fail("its footer has an Arrow schema that is damaged")
				}
			})
		default:
			c.skip(kind)
		}
	})
	if c.err == nil && !printable(key, cut) {
		c.fail("its footer has a key that is not text")
	}
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"

// printable reports whether text has no control characters and is UTF-8, as far as it was not cut.
func printable(text []byte, cut bool) bool {
	for _, b := range text {
		if b < ' ' || b == 0x7f {
			return false
		}
	}
	return cut || utf8.Valid(text)
}

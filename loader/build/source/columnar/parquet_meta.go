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

// A chunk is a column of a row group.
type chunk struct {
	offset, size int64 // of its pages in the file, the dictionary first
	values       int64
	codec        int
	uncompressed int64
}

// A rowGroup has the chunks of the wanted leaves.
type rowGroup struct {
	rows   int64
	chunks []chunk
}

// parquetFile is the metadata of a file. Its row groups keep the chunks of the wanted columns
// alone.
type parquetFile struct {
	at     io.ReaderAt
	size   int64
	root   *node
	leaves []*node
	wanted []*node // of the leaves
	groups []rowGroup
	rows   int64
	footer int64   // its length
	first  []chunk // of the first row group, all columns; until they were checked

	options Options
	top     []*node // the wanted columns
}

const (
	parquetMagic = "PAR1"
	maxFooter    = 256 << 20
)

// readParquetFooter reads the end of a file. maxBytes bounds the footer.
func readParquetFooter(at io.ReaderAt, size, maxBytes int64) (footer []byte, err error) {
	if size < 12 {
		return nil, corrupt("the file is too short for parquet")
	}
	var tail [8]byte
	if err := readAt(at, tail[:], size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case parquetMagic:
	case "PARE":
		return nil, unsupported("its columns are encrypted")
	default:
		return nil, corrupt("the file ends without its footer; copy it again")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 {
		return nil, corrupt("its footer is longer than the file")
	}
	if n > maxBytes {
		return nil, &SizeError{"its footer", n}
	}
	var begins [1]byte
	if err := readAt(at, begins[:], size-8-n); err != nil {
		return nil, err
	}
	if begins[0] != thriftI32|1<<4 { // the version, which every writer puts first
		return nil, corrupt("its footer does not begin where its length says")
	}
	footer = make([]byte, n)
	return footer, readAt(at, footer, size-8-n)
}

// checkParquetBegin refuses a file that does not begin as parquet files do.
func checkParquetBegin(at io.ReaderAt) error {
	var head [len(parquetMagic)]byte
	if err := readAt(at, head[:], 0); err != nil {
		return err
	}
	if string(head[:]) != parquetMagic {
		return corrupt("it does not begin like a parquet file")
	}
	return nil
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

// parse reads a footer. wanted chooses the columns whose chunks are kept.
func (f *parquetFile) parse(footer []byte, wanted func(*node) bool) error {
	c := &compact{b: footer}
	var elements []schemaElement
	f.rows = -1
	c.fields(func(id int, kind byte) {
		switch {
		case id == 2 && kind == thriftList:
			n, _ := c.list()
			for i := 0; i < n && c.err == nil; i++ {
				elements = append(elements, c.schemaElement())
			}
			if c.err == nil {
				c.setErr(f.buildSchema(elements))
			}
		case id == 3 && kind == thriftI64:
			f.rows = c.varint()
		case id == 4 && kind == thriftList:
			if f.root == nil {
				c.fail("its footer has no schema")
				return
			}
			slots := make([]int, len(f.leaves))
			for i, leaf := range f.leaves {
				slots[i] = -1
				if wanted(leaf) {
					slots[i] = len(f.wanted)
					f.wanted = append(f.wanted, leaf)
				}
			}
			n, _ := c.list()
			for i := 0; i < n && c.err == nil; i++ {
				var all *[]chunk
				if i == 0 && !f.options.Remote {
					all = &f.first
				}
				f.groups = append(f.groups, c.rowGroup(slots, len(f.wanted), all))
			}
		case id == 5 && kind == thriftList:
			n, _ := c.list()
			for i := 0; i < n && c.err == nil; i++ {
				c.keyValue()
			}
		case id == 6 && kind == thriftBinary:
			if by := c.binary(); c.err == nil && !printable(by) {
				c.fail("its footer names a writer that is no text")
			}
		case id == 8:
			c.setErr(unsupported("its columns are encrypted"))
		default:
			c.skip(kind)
		}
	})
	if c.err != nil {
		return c.err
	}
	if f.root == nil {
		return corrupt("its footer has no schema")
	}
	return f.check()
}

func (c *compact) setErr(err error) {
	if c.err == nil {
		c.err = err
	}
}

// check compares what the footer says with itself and with the file.
func (f *parquetFile) check() error {
	var rows int64
	for i := range f.groups {
		g := &f.groups[i]
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
	if err := f.checkFirst(); err != nil {
		return err
	}
	if f.rows != rows {
		return corrupt("its footer counts %d rows, its row groups %d", f.rows, rows)
	}
	return nil
}

// checkFirst reads the first page header of every column, wanted or not: a file that is damaged there
// is not taken for a sound one.
func (f *parquetFile) checkFirst() error {
	if f.options.Lenient {
		f.first = nil // what is wanted is judged when it is read
	}
	for i, ch := range f.first {
		if ch.values <= 0 || ch.offset < 0 || ch.size < 0 || ch.offset > f.size-ch.size {
			continue
		}
		l := leafReader{f: f, n: f.leaves[i], ch: &ch, pos: ch.offset, end: ch.offset + ch.size}
		h, err := l.header()
		if err == nil && (h.kind < pageData || h.kind > pageDataV2) {
			err = corrupt("a page of an unknown kind")
		}
		if err != nil {
			return fmt.Errorf("row group 1, column %s, its first page: %w", f.leaves[i].path, err)
		}
	}
	f.first = nil
	return nil
}

// keyValue checks an entry that the writer added: Arrow's schema is text in base64.
func (c *compact) keyValue() {
	var key string
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			key = string(c.binary())
		case id == 2 && kind == thriftBinary:
			value := c.binary()
			if key == "ARROW:schema" && bytes.ContainsFunc(value, func(r rune) bool {
				return !strings.ContainsRune(base64Digits, r)
			}) {
				c.fail("its footer has an Arrow schema that is damaged")
			}
		default:
			c.skip(kind)
		}
	})
	if c.err == nil && !printable([]byte(key)) {
		c.fail("its footer has a key that is no text")
	}
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"

// printable reports whether text has no control characters and is UTF-8.
func printable(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b == 0x7f {
			return false
		}
	}
	return utf8.Valid(text)
}

// rowGroup reads a row group. slots has the place of each leaf among the wanted ones, or -1.
// all, where set, gets every column.
func (c *compact) rowGroup(slots []int, wanted int, all *[]chunk) (g rowGroup) {
	g.rows = -1
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftList:
			n, _ := c.list()
			if n != len(slots) {
				c.fail("a row group has %d columns, the schema %d", n, len(slots))
				return
			}
			g.chunks = make([]chunk, wanted)
			for i := range n {
				if c.err != nil {
					return
				}
				ch := c.columnChunk()
				if slots[i] >= 0 {
					g.chunks[slots[i]] = ch
				}
				if all != nil {
					*all = append(*all, ch)
				}
			}
		case id == 3 && kind == thriftI64:
			g.rows = c.varint()
		default:
			c.skip(kind)
		}
	})
	return g
}

func (c *compact) columnChunk() (ch chunk) {
	data, dictionary := int64(-1), int64(0)
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			if path := c.binary(); len(path) > 0 {
				c.setErr(unsupported("its columns lie in another file, %.100q", path))
			}
		case id == 3 && kind == thriftStruct:
			c.fields(func(id int, kind byte) {
				switch {
				case id == 4 && kind == thriftI32:
					ch.codec = int(c.i32())
				case id == 5 && kind == thriftI64:
					ch.values = c.varint()
				case id == 6 && kind == thriftI64:
					ch.uncompressed = c.varint()
				case id == 7 && kind == thriftI64:
					ch.size = c.varint()
				case id == 9 && kind == thriftI64:
					data = c.varint()
				case id == 11 && kind == thriftI64:
					dictionary = c.varint()
				default:
					c.skip(kind)
				}
			})
		default:
			c.skip(kind)
		}
	})
	ch.offset = data
	if dictionary > 0 && dictionary < data {
		ch.offset = dictionary
	}
	return ch
}

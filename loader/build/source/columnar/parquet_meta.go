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

type physical int8

const (
	typeBoolean physical = iota
	typeInt32
	typeInt64
	typeInt96
	typeFloat
	typeDouble
	typeByteArray
	typeFixed
	typeNone physical = -1
)

type repetition int8

const (
	required repetition = iota
	optional
	repeated
)

// Codecs by their numbers in the format.
const (
	codecNone = iota
	codecSnappy
	codecGzip
	codecLZO
	codecBrotli
	codecLZ4
	codecZstd
	codecLZ4Raw
)

// A node is a column or a group of columns.
type node struct {
	name       string
	repetition repetition
	def, rep   int // levels at which a value of it is there, and at which it repeats
	children   []*node

	leaf   int // number among the leaves, -1 for a group
	kind   physical
	width  int // of typeFixed
	mean   meaning
	scale  int
	format listFormat
	path   string
}

// meaning is what the bytes of a column stand for besides their physical type.
type meaning int8

const (
	meansNothing meaning = iota
	meansText
	meansUnsigned
	meansDecimal
	meansDate
	meansTimeMillis
	meansTimeMicros
	meansTimeNanos
	meansMillis
	meansMicros
	meansNanos
	meansSeconds
	meansFloat16
	meansUUID
)

type listFormat int8

const (
	plainGroup listFormat = iota
	listGroup
	mapGroup
)

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
	maxLeaves    = 1 << 16
	maxDepth     = 30
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

// A schemaElement is a line of the schema, which lists a tree from the root down.
type schemaElement struct {
	node
	children int
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

func (c *compact) schemaElement() (e schemaElement) {
	e.kind, e.leaf = typeNone, -1
	converted := -1
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			e.kind = physical(c.i32())
		case id == 2 && kind == thriftI32:
			e.width = int(c.i32())
		case id == 3 && kind == thriftI32:
			e.repetition = repetition(c.i32())
		case id == 4 && kind == thriftBinary:
			e.name = strings.ToValidUTF8(string(c.binary()), "\uFFFD")
		case id == 5 && kind == thriftI32:
			e.children = int(c.i32())
		case id == 6 && kind == thriftI32:
			converted = int(c.i32())
		case id == 7 && kind == thriftI32:
			e.scale = int(c.i32())
		case id == 10 && kind == thriftStruct:
			c.logicalType(&e)
		default:
			c.skip(kind)
		}
	})
	e.convert(converted)
	return e
}

// logicalType reads the newer form of what a column means.
func (c *compact) logicalType(e *schemaElement) {
	c.fields(func(id int, kind byte) {
		if kind != thriftStruct {
			c.skip(kind)
			return
		}
		switch id {
		case 1, 4, 12:
			e.mean = meansText
		case 2:
			e.format = mapGroup
		case 3:
			e.format = listGroup
		case 5:
			e.mean = meansDecimal
		case 6:
			e.mean = meansDate
		case 14:
			e.mean = meansUUID
		case 15:
			e.mean = meansFloat16
		}
		c.fields(func(field int, kind byte) {
			switch {
			case id == 5 && field == 1 && kind == thriftI32:
				e.scale = int(c.i32())
			case (id == 7 || id == 8) && field == 2 && kind == thriftStruct:
				c.fields(func(unit int, kind byte) {
					first := meansMillis
					if id == 7 {
						first = meansTimeMillis
					}
					if unit >= 1 && unit <= 3 {
						e.mean = first + meaning(unit-1)
					}
					c.skip(kind)
				})
			case id == 10 && field == 2:
				if kind == thriftFalse {
					e.mean = meansUnsigned
				}
				c.skip(kind)
			default:
				c.skip(kind)
			}
		})
	})
}

// convert takes the older form of what a column means, where the newer is missing.
func (e *schemaElement) convert(converted int) {
	if e.mean == meansNothing && converted >= 0 {
		e.mean = map[int]meaning{0: meansText, 4: meansText, 5: meansDecimal, 6: meansDate, 7: meansTimeMillis,
			8: meansTimeMicros, 9: meansMillis, 10: meansMicros, 11: meansUnsigned, 12: meansUnsigned,
			13: meansUnsigned, 14: meansUnsigned, 19: meansText}[converted]
	}
	if e.format == plainGroup {
		e.format = map[int]listFormat{1: mapGroup, 2: mapGroup, 3: listGroup}[converted]
	}
}

// buildSchema builds the tree from a schema's lines.
func (f *parquetFile) buildSchema(elements []schemaElement) error {
	if len(elements) < 2 {
		return corrupt("its schema has no columns")
	}
	next := 0
	var build func(def, rep, depth int, path string) (*node, error)
	build = func(def, rep, depth int, path string) (*node, error) {
		if next >= len(elements) || depth > maxDepth {
			return nil, corrupt("its schema is no tree")
		}
		e := &elements[next]
		n := &e.node
		next++
		if depth > 0 {
			n.path = strings.TrimPrefix(path+"."+n.name, ".")
			switch n.repetition {
			case required:
			case optional:
				def++
			case repeated:
				def, rep = def+1, rep+1
			default:
				return nil, corrupt("column %s has an unknown repetition", n.path)
			}
		}
		n.def, n.rep = def, rep
		if e.children == 0 && depth > 0 && n.kind != typeNone {
			if n.kind < 0 || n.kind > typeFixed || n.kind == typeFixed && (n.width <= 0 || n.width > 1<<20) {
				return nil, corrupt("column %s has an unknown type", n.path)
			}
			n.leaf = len(f.leaves)
			f.leaves = append(f.leaves, n)
			return n, nil
		}
		if e.children < 0 || e.children > len(elements)-next || len(f.leaves) > maxLeaves {
			return nil, corrupt("its schema is no tree")
		}
		for range e.children {
			child, err := build(def, rep, depth+1, n.path)
			if err != nil {
				return nil, err
			}
			n.children = append(n.children, child)
		}
		return n, nil
	}
	root, err := build(0, 0, 0, "")
	if err != nil {
		return err
	}
	if next != len(elements) {
		return corrupt("its schema is no tree")
	}
	f.root = root
	return nil
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

// A pageHeader is what precedes a page.
type pageHeader struct {
	kind                     int32
	uncompressed, compressed int32
	crc                      *uint32
	values                   int32
	encoding                 int32
	// in pages of the second version
	rows, nulls      int32
	defBytes, repLen int32
	isCompressed     bool
}

const (
	pageData = iota
	pageIndex
	pageDictionary
	pageDataV2
)

func (c *compact) pageHeader() (h pageHeader) {
	h.kind, h.values, h.isCompressed = -1, -1, true
	inner := func(v2 bool) {
		c.fields(func(id int, kind byte) {
			switch {
			case id == 1 && kind == thriftI32:
				h.values = c.i32()
			case id == 2 && kind == thriftI32 && !v2, id == 4 && kind == thriftI32 && v2:
				h.encoding = c.i32()
			case id == 2 && kind == thriftI32 && v2:
				h.nulls = c.i32()
			case id == 3 && kind == thriftI32 && v2:
				h.rows = c.i32()
			case id == 5 && kind == thriftI32 && v2:
				h.defBytes = c.i32()
			case id == 6 && kind == thriftI32 && v2:
				h.repLen = c.i32()
			case id == 7 && v2 && (kind == thriftTrue || kind == thriftFalse):
				h.isCompressed = kind == thriftTrue
			default:
				c.skip(kind)
			}
		})
	}
	c.fields(func(id int, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = c.i32()
		case id == 2 && kind == thriftI32:
			h.uncompressed = c.i32()
		case id == 3 && kind == thriftI32:
			h.compressed = c.i32()
		case id == 4 && kind == thriftI32:
			crc := uint32(c.i32())
			h.crc = &crc
		case id == 5 && kind == thriftStruct:
			inner(false)
		case id == 7 && kind == thriftStruct:
			inner(false)
		case id == 8 && kind == thriftStruct:
			inner(true)
		default:
			c.skip(kind)
		}
	})
	if c.err == nil && (h.uncompressed < 0 || h.compressed < 0 || h.defBytes < 0 || h.repLen < 0 ||
		h.kind == pageDataV2 && int64(h.defBytes)+int64(h.repLen) > int64(min(h.compressed, h.uncompressed))) {
		c.fail("a page header has an impossible size")
	}
	return h
}

func (n *node) String() string { return fmt.Sprintf("column %s", n.path) }

package columnar

import (
	"cmp"
	"strings"
)

// The limits of a schema.
const (
	maxLeaves    = 1 << 16 // wanted ones
	maxDepth     = 30      // levels of a wanted column
	maxNameBytes = 64 << 10
	maxPathBytes = 1000 // it is for messages
)

// physical is the type of a column's values in the file.
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

// repetition is how often a value may occur in its parent.
type repetition int8

const (
	required repetition = iota
	optional
	repeated
)

// A node is a column or a group of columns.
type node struct {
	name       string
	repetition repetition
	def, rep   int // levels at which a value of it is there, and at which it repeats
	children   []*node

	leaf   int // number among the wanted leaves, -1 for a group
	kind   physical
	width  int // bytes of a value of typeFixed
	mean   meaning
	utc    bool // times are in UTC
	scale  int
	format listFormat
	path   string
	sparse sparseness
}

// meaning is what the bytes of a column stand for besides their physical type.
type meaning int8

const (
	meansNothing meaning = iota
	meansText
	meansJSON
	meansUnsigned
	meansDecimal
	meansDate
	meansTimeMillis
	meansTimeMicros
	meansTimeNanos
	meansMillis
	meansMicros
	meansNanos
	meansFloat16
	meansUUID
)

// listFormat is what the children of a group stand for.
type listFormat int8

const (
	plainGroup listFormat = iota
	listGroup
	mapGroup
)

// A schemaElement is a line of the schema, which lists a tree from the root down.
type schemaElement struct {
	node
	children int
	longName bool
}

func (e *schemaElement) isText() bool {
	return e.kind == typeByteArray && e.isLeaf() && e.repetition != repeated && e.mean != meansDecimal &&
		e.mean != meansJSON
}

func (e *schemaElement) isLeaf() bool { return e.children == 0 && e.kind != typeNone }

// schemaElement reads a line, and its name into name.
func (c *compact) schemaElement(name *[]byte) (e schemaElement) {
	v := [8]int64{1: int64(typeNone), 6: -1}
	*name, e.leaf = (*name)[:0], -1
	c.numbers(v[:], func(id int, kind byte) {
		switch {
		case id == 4 && kind == thriftBinary:
			*name, e.longName = c.text((*name)[:0], maxNameBytes)
		case id == 10 && kind == thriftStruct:
			c.logicalType(&e)
		default:
			c.skip(kind)
		}
	})
	e.kind, e.width, e.repetition, e.children = physical(v[1]), int(v[2]), repetition(v[3]), int(v[5])
	e.scale = cmp.Or(e.scale, int(v[7]))
	e.convert(int(v[6]))
	return e
}

// What the numbers of the newer form stand for.
var (
	logicalMeanings = map[int]meaning{1: meansText, 4: meansText, 5: meansDecimal, 6: meansDate, 12: meansJSON,
		14: meansUUID, 15: meansFloat16}
	logicalFormats = map[int]listFormat{2: mapGroup, 3: listGroup}
)

// logicalType reads the newer form of what a column means.
func (c *compact) logicalType(e *schemaElement) {
	c.fields(func(id int, kind byte) {
		if kind != thriftStruct {
			c.skip(kind)
			return
		}
		e.mean, e.format = logicalMeanings[id], logicalFormats[id]
		c.fields(func(field int, kind byte) {
			switch {
			case id == 5 && field == 1 && kind == thriftI32:
				e.scale = int(c.i32())
			case id == 8 && field == 1:
				e.utc = kind == thriftTrue
				c.skip(kind)
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
			13: meansUnsigned, 14: meansUnsigned, 19: meansJSON}[converted]
		e.utc = true
	}
	if e.format == plainGroup {
		e.format = map[int]listFormat{1: mapGroup, 2: mapGroup, 3: listGroup}[converted]
	}
}

// A span is leaves of the schema that follow each other and are wanted: from the one with the number
// from on, whose number among the wanted ones is slot.
type span struct{ from, to, slot int }

// A schemaReader builds the tree of the wanted columns from a schema's lines. Of the others it keeps
// nothing.
type schemaReader struct {
	c    *compact
	f    *parquetFile
	left int    // lines to come
	name []byte // the one on the last line
}

// nodeBytes bounds what a node takes besides its name and path, with its places in lists.
const nodeBytes = 256

// schema reads a schema of n lines.
func (f *parquetFile) schema(c *compact, n int) {
	if n < 2 {
		c.fail("its schema has no columns")
	}
	s := schemaReader{c: c, f: f, left: n}
	root := s.line(0)
	for range root.children {
		e := s.line(1)
		if c.err != nil {
			return
		}
		wanted := f.options.wants(s.name)
		if !f.over() {
			f.columnList.add(columnInfo{string(s.name[:min(len(s.name), maxNameTold)]), e.isText(),
				e.isList() || e.mean == meansJSON}, wanted)
		}
		if !wanted {
			s.passOver(&e)
		} else if top := s.node(&e, 0, 0, 1, nil); !f.over() {
			f.top = append(f.top, top)
		}
	}
	if s.left != 0 {
		c.fail("its schema is not a tree")
	}
	if f.options.Sparse {
		for _, n := range f.top {
			n.setSparse(false, false)
		}
	}
	f.hasSchema = true
}

// line reads the next line and checks it.
func (s *schemaReader) line(depth int) (e schemaElement) {
	if s.left == 0 {
		s.c.fail("its schema is not a tree")
		return e
	}
	s.left--
	e = s.c.schemaElement(&s.name)
	switch {
	case s.c.err != nil:
	case e.children < 0 || e.children > s.left:
		s.c.fail("its schema is not a tree")
	case depth == 0:
	case e.repetition < required || e.repetition > repeated:
		s.c.fail("column %.100s has an unknown repetition", s.name)
	case e.isLeaf() && (e.kind < 0 || e.kind > typeFixed ||
		e.kind == typeFixed && (e.width <= 0 || e.width > 1<<20)):
		s.c.fail("column %.100s has an unknown type", s.name)
	}
	if s.c.err != nil {
		e.children = 0
	}
	return e
}

// passOver reads the lines below a column that nobody wants.
func (s *schemaReader) passOver(e *schemaElement) {
	for pending := 1; ; {
		if pending--; e.isLeaf() {
			s.f.leaves++
		}
		if pending += e.children; pending == 0 || s.c.err != nil {
			return
		}
		below := s.line(1)
		e = &below
	}
}

// node reads the lines below a wanted one. It returns nil where that would take more memory than it may.
func (s *schemaReader) node(e *schemaElement, def, rep, depth int, parent *node) *node {
	f := s.f
	switch {
	case depth > maxDepth:
		s.c.setErr(unsupported("its columns are nested deeper than %d levels; leave such columns out of the "+
			"wanted ones", maxDepth))
	case e.longName:
		s.c.setErr(unsupported("the name of a column is longer than %d bytes", maxNameBytes))
	case f.numWanted > maxLeaves:
		s.c.setErr(unsupported("more than %d of its columns are wanted; name those that are", maxLeaves))
	}
	if s.c.err != nil {
		return nil
	}
	n := &e.node
	n.name = strings.ToValidUTF8(string(s.name), "\uFFFD")
	if n.path = n.name; parent != nil {
		n.path = parent.path + "." + n.name
	}
	n.path = n.path[:min(len(n.path), maxPathBytes)]
	f.take(nodeBytes + int64(2*len(n.name)+len(n.path)))
	switch n.repetition {
	case optional:
		def++
	case repeated:
		def, rep = def+1, rep+1
	}
	n.def, n.rep = def, rep
	if e.isLeaf() {
		f.wantLeaf(n)
	}
	var kept *node
	if !f.over() {
		c := *n // e has more
		kept = &c
		if n.leaf >= 0 {
			f.wanted = append(f.wanted, kept)
		}
	}
	for range e.children {
		below := s.line(depth + 1)
		if child := s.node(&below, def, rep, depth+1, n); child != nil && kept != nil {
			kept.children = append(kept.children, child)
		}
	}
	return kept
}

// wantLeaf gives a leaf its number among the wanted ones.
func (f *parquetFile) wantLeaf(n *node) {
	n.leaf = f.numWanted
	if last := len(f.spans) - 1; last >= 0 && f.spans[last].to == f.leaves {
		f.spans[last].to++
	} else {
		f.spans = append(f.spans, span{f.leaves, f.leaves + 1, f.numWanted})
	}
	f.numWanted++
	f.leaves++
}

package columnar

import (
	"fmt"
	"strings"
)

// The limits of a schema.
const (
	maxLeaves = 1 << 16
	maxDepth  = 30
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

func (n *node) String() string { return fmt.Sprintf("column %s", n.path) }

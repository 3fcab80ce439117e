package columnar

import (
	"slices"

	"github.com/dsload/dsload/internal/jsonscan"
)

// sparseness says what becomes of the null members of a struct.
type sparseness int8

const (
	whole    sparseness = iota // they are written
	sparse                     // left out, and counted
	sparsely                   // left out: of a message, a field without a value says nothing
)

// sparsenessOf returns that of a struct inside a list. pair says that it is one of a map.
func sparsenessOf[T any](members []T, name func(T) string, pair bool) sparseness {
	switch {
	case pair:
		return whole
	case slices.ContainsFunc(members, func(m T) bool { return name(m) == "role" || name(m) == "from" }):
		return sparsely
	}
	return sparse
}

// setSparse makes the structs below lists sparse.
func (n *node) setSparse(inList, pair bool) {
	if inList {
		n.sparse = sparsenessOf(n.children, func(c *node) string { return c.name }, pair)
	}
	for _, c := range n.children {
		c.setSparse(inList || n.isList(), n.format == mapGroup)
	}
}

// setSparse makes the structs below lists sparse.
func (a *arrowField) setSparse(inList, pair bool) {
	if inList {
		a.sparse = sparsenessOf(a.children, func(c *arrowField) string { return c.name }, pair)
	}
	for _, c := range a.children {
		c.setSparse(inList || a.isList(), a.kind == arrowMap)
	}
}

// beginMember appends the name of a struct's next member.
func beginMember(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' { // dst is of no use where a row is over its limit
		dst = append(dst, ',')
	}
	return append(jsonscan.AppendString(dst, []byte(name)), ':')
}

// maxRowValues bounds the values of a row: nulls and empty lists take almost no room in a file.
const maxRowValues = 1 << 24

// An object is the JSON object that a row becomes.
type object struct {
	start, limit int  // where it begins, and how long it may be
	over         bool // it is longer
	values       int  // in the row
	omitted      int  // members that were left out
}

// append appends the object of the values that value appends, one for each column.
func (o *object) append(dst []byte, limit int, columns int, value func(dst []byte, i int) ([]byte, error)) (Appended, error) {
	*o = object{start: len(dst), limit: limit}
	dst = append(dst, '{')
	var err error
	for i := range columns {
		if dst, err = value(dst, i); err != nil {
			return Appended{JSON: dst[:o.start]}, err
		}
	}
	dst = append(dst, '}')
	if o.over || len(dst)-o.start > limit {
		return Appended{JSON: dst[:o.start], Over: true, Omitted: o.omitted}, nil
	}
	return Appended{JSON: dst, Omitted: o.omitted}, nil
}

// tooManyValues is the error of a row that has more values than maxRowValues.
func tooManyValues() error { return unsupported("a row has more than %d values", maxRowValues) }

// trim drops what is there of an object that is too long.
func (o *object) trim(dst []byte) []byte {
	if len(dst)-o.start <= o.limit {
		return dst
	}
	o.over = true
	return dst[:o.start]
}

// endMember takes a member of a sparse struct back if it is null. It begins at before, and its value at the byte at.
func (o *object) endMember(dst []byte, before, at int, s sparseness) []byte {
	if s == whole || len(dst) < at || string(dst[at:]) != "null" {
		return dst
	}
	if s == sparse {
		o.omitted++
	}
	return dst[:before]
}

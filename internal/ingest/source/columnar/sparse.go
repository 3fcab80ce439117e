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

// omitted counts the members that were left out of a row.
type omitted int

// end takes a member of a sparse struct back if it is null. It begins at before, and its value at the byte at.
func (o *omitted) end(dst []byte, before, at int, s sparseness) []byte {
	if s == whole || len(dst) < at || string(dst[at:]) != "null" {
		return dst
	}
	if s == sparse {
		*o++
	}
	return dst[:before]
}

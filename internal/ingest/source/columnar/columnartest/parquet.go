// Package columnartest makes files of columns of unusual shapes for tests.
package columnartest

import (
	"encoding/binary"
	"fmt"
)

// Parquet describes a parquet file with a column "text" and others, all of text and without pages.
type Parquet struct {
	Columns int    // besides "text"
	Groups  int    // row groups, of a row each
	Entries int    // key-value entries
	Value   string // of each
	Depth   int    // levels of groups around each of the other columns
}

// The types of Thrift's compact protocol.
const (
	i32       = 5
	i64       = 6
	text      = 8
	list      = 9
	structure = 12
)

// Bytes returns the file.
func (p Parquet) Bytes() []byte {
	w := writer{b: []byte("PAR1")}
	from := len(w.b)
	w.field(1, i32)
	w.number(2)
	w.schema(p)
	w.field(1, i64) // rows
	w.number(p.Groups)
	w.list(1, p.Groups)
	for range p.Groups {
		w.group(p)
	}
	w.list(1, p.Entries)
	for i := range p.Entries {
		w.field(1, text)
		w.text(fmt.Sprint("key", i))
		w.field(1, text)
		w.text(p.Value)
		w.end()
	}
	w.end()
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(w.b)-from))
	return append(w.b, "PAR1"...)
}

type writer struct{ b []byte }

// field begins the field whose number is delta above that of the last one.
func (w *writer) field(delta, kind byte) { w.b = append(w.b, delta<<4|kind) }

func (w *writer) number(n int) { w.b = binary.AppendVarint(w.b, int64(n)) }

func (w *writer) text(s string) {
	w.b = binary.AppendUvarint(w.b, uint64(len(s)))
	w.b = append(w.b, s...)
}

// list begins a list of n structures.
func (w *writer) list(delta byte, n int) {
	w.field(delta, list)
	w.b = binary.AppendUvarint(append(w.b, 0xf0|structure), uint64(n))
}

func (w *writer) end() { w.b = append(w.b, 0) }

func (w *writer) schema(p Parquet) {
	w.list(1, 2+p.Columns*(1+p.Depth))
	w.element("schema", 1+p.Columns)
	w.element("text", 0)
	for i := range p.Columns {
		for level := range p.Depth {
			w.element(fmt.Sprintf("column%d_%d", i, level), 1)
		}
		w.element(fmt.Sprint("column", i), 0)
	}
}

// element writes a group of columns, or a column of text.
func (w *writer) element(name string, children int) {
	if children == 0 {
		w.field(1, i32)
		w.number(6) // bytes of any length
		w.field(3, text)
	} else {
		w.field(4, text)
	}
	w.text(name)
	if children > 0 {
		w.field(1, i32)
		w.number(children)
	}
	w.end()
}

// group writes a row group of one row.
func (w *writer) group(p Parquet) {
	w.list(1, 1+p.Columns)
	for range 1 + p.Columns {
		w.field(3, structure)
		for i, delta := range []byte{5, 1, 1, 2} { // values, two sizes, where the first page is
			w.field(delta, i64)
			w.number(4 * (i / 3))
		}
		w.end()
		w.end()
	}
	w.field(2, i64)
	w.number(1)
	w.end()
}

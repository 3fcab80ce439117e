package columnartest

import "encoding/binary"

// Column describes a parquet file of one required column "v", without pages.
type Column struct {
	Type      int  // as the format numbers them
	Converted int  // its older logical type, as the format numbers them; 0, text, is left out for other types than 6
	Unordered bool // the footer does not say in which order statistics are
	Groups    []Statistics
}

// Statistics are those of the column in a row group of ten rows. A value that is nil is not written.
type Statistics struct {
	OldMax, OldMin, Max, Min []byte
	Nulls                    int // -1 to leave the number out
}

// Bytes returns the file.
func (c Column) Bytes() []byte {
	w := writer{b: []byte("PAR1")}
	from := len(w.b)
	w.field(1, i32)
	w.number(2)
	w.list(1, 2)
	w.element("schema", 1)
	w.field(1, i32)
	w.number(c.Type)
	w.field(2, i32)
	w.number(0) // required
	w.field(1, text)
	w.text("v")
	if c.Converted > 0 || c.Type == 6 {
		w.field(2, i32)
		w.number(c.Converted)
	}
	w.end()
	w.field(1, i64)
	w.number(10 * len(c.Groups))
	w.list(1, len(c.Groups))
	for _, s := range c.Groups {
		w.list(1, 1)
		w.field(3, structure)
		for i, delta := range []byte{5, 1, 1, 2} { // values, two sizes, where the first page is
			w.field(delta, i64)
			w.number([]int{10, 0, 0, 4}[i])
		}
		w.field(3, structure)
		w.statistics(s)
		w.end()
		w.end()
		w.field(2, i64)
		w.number(10)
		w.end()
	}
	if !c.Unordered {
		w.list(3, 1)
		w.field(1, structure)
		w.end()
		w.end()
	}
	w.end()
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(w.b)-from))
	return append(w.b, "PAR1"...)
}

func (w *writer) statistics(s Statistics) {
	last := byte(0)
	for i, v := range [][]byte{nil, s.OldMax, s.OldMin, nil, nil, s.Max, s.Min} {
		id := byte(i)
		switch {
		case id == 3 && s.Nulls >= 0:
			w.field(id-last, i64)
			w.number(s.Nulls)
			last = id
		case v != nil:
			w.field(id-last, text)
			w.text(string(v))
			last = id
		}
	}
	w.end()
}

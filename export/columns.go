package export

import (
	"encoding/binary"

	"github.com/dsload/dsload/internal/arrowipc"
)

// columns gathers rows of lists for Arrow record batches. Their buffers are those of the batch.
type columns struct {
	of     []column
	fields []arrowipc.Field
	lists  []listColumn
	rows   int64
	head   []byte
}

// listColumn is a column of lists: where they end, and the bytes of their items.
type listColumn struct {
	offsets []byte
	items   []byte
	n       int64 // number of items
}

const (
	batchBytes = 2 << 20
	batchRows  = 16 << 10
)

func newColumns(of []column) *columns {
	c := &columns{of: of}
	types := map[int]arrowipc.Type{0: arrowipc.Bool, 2: arrowipc.Uint16, 4: arrowipc.Int32}
	for _, column := range of {
		c.fields = append(c.fields, arrowipc.Field{Name: column.name, Type: types[column.width], Nullable: true, List: true,
			Items: true})
	}
	c.lists = make([]listColumn, len(c.fields))
	c.reset()
	return c
}

// reset drops the rows, and the buffers that grew for a long one.
func (c *columns) reset() {
	c.rows = 0
	for i := range c.lists {
		l := &c.lists[i]
		if cap(l.items) > 2*batchBytes {
			l.items = nil
		}
		l.offsets, l.items, l.n = append(l.offsets[:0], 0, 0, 0, 0), l.items[:0], 0
	}
}

// add appends items to the row.
func (c *columns) add(ids []byte, extras *rowExtras) {
	for i := range c.lists {
		l := &c.lists[i]
		switch of := c.of[i]; of.part {
		case inputIDs:
			l.addIDs(ids, of.width)
		case labelIDs:
			l.addIDs(extras.labels, of.width)
		default:
			for _, m := range extras.mask {
				if l.n%8 == 0 {
					l.items = append(l.items, 0)
				}
				if m {
					l.items[l.n/8] |= 1 << (l.n % 8)
				}
				l.n++
			}
		}
	}
}

// addIDs appends ids, which a batch has as shards do: little-endian.
func (l *listColumn) addIDs(raw []byte, width int) {
	l.items = append(l.items, raw...)
	l.n += int64(len(raw) / width)
}

// endRow ends a row, and reports whether the batch is full.
func (c *columns) endRow() (full bool) {
	bytes := 0
	for i := range c.lists {
		l := &c.lists[i]
		l.offsets = binary.LittleEndian.AppendUint32(l.offsets, uint32(l.n))
		bytes += len(l.items)
	}
	c.rows++
	return bytes >= batchBytes || c.rows >= batchRows
}

// writeTo writes the batch, and begins another.
func (c *columns) writeTo(w *file) {
	var lengths, sizes []int64
	for i := range c.lists {
		l := &c.lists[i]
		lengths = append(lengths, c.rows, l.n)
		sizes = append(sizes, 0, int64(len(l.offsets)), 0, int64(len(l.items)))
	}
	c.head = arrowipc.AppendBatch(c.head[:0], c.rows, lengths, sizes)
	w.Write(c.head)
	var zeros [arrowipc.Alignment]byte
	for i := range c.lists {
		for _, data := range [][]byte{c.lists[i].offsets, c.lists[i].items} {
			w.Write(data)
			w.Write(zeros[:arrowipc.Padding(int64(len(data)))])
		}
	}
	c.reset()
}

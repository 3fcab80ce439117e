package export

import "encoding/binary"

// A thriftWriter writes Thrift's compact protocol, in which parquet has its metadata.
type thriftWriter struct {
	out  []byte
	last []int // the field written last in each open struct
}

const (
	thriftInt       = 5
	thriftLong      = 6
	thriftText      = 8
	thriftSequence  = 9
	thriftStructure = 12
)

func (w *thriftWriter) begin() { w.last = append(w.last, 0) }

func (w *thriftWriter) end() {
	w.out = append(w.out, 0)
	w.last = w.last[:len(w.last)-1]
}

// field writes the header of a field; ids increase by less than 16.
func (w *thriftWriter) field(id, kind int) {
	last := &w.last[len(w.last)-1]
	w.out = append(w.out, byte((id-*last)<<4|kind))
	*last = id
}

func (w *thriftWriter) zigzag(v int64) {
	w.out = binary.AppendUvarint(w.out, uint64(v<<1)^uint64(v>>63))
}

func (w *thriftWriter) int(id int, v int64) {
	w.field(id, thriftInt)
	w.zigzag(v)
}

func (w *thriftWriter) long(id int, v int64) {
	w.field(id, thriftLong)
	w.zigzag(v)
}

func (w *thriftWriter) string(s string) {
	w.out = append(binary.AppendUvarint(w.out, uint64(len(s))), s...)
}

func (w *thriftWriter) text(id int, s string) {
	w.field(id, thriftText)
	w.string(s)
}

func (w *thriftWriter) structure(id int) {
	w.field(id, thriftStructure)
	w.begin()
}

func (w *thriftWriter) list(id, n, kind int) {
	w.field(id, thriftSequence)
	if n < 15 {
		w.out = append(w.out, byte(n<<4|kind))
		return
	}
	w.out = binary.AppendUvarint(append(w.out, byte(15<<4|kind)), uint64(n))
}

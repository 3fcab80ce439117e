// Package arrowipc writes and reads the messages of an Arrow IPC stream (arrow.apache.org/docs/format/Columnar.html):
// the schema, record batches, the end. It knows the columns that feeds and exports have, numbers and lists
// of them, none of which is null.
//
//	[]Field, metadata -> AppendSchema
//	rows, values, sizes of buffers -> AppendBatch, then the buffers, each padded to Alignment
//
// Reader reads what these write. Equal calls give equal bytes. Package shardfile lays out its files itself.
package arrowipc

import (
	"encoding/binary"

	"github.com/dsload/dsload/internal/flatbuf"
)

// Alignment is that of messages and of the buffers in a body.
const Alignment = 64

// EndOfStream is the marker that ends a stream.
const EndOfStream = "\xff\xff\xff\xff\x00\x00\x00\x00"

// A Type is that of values.
type Type int

// The types of values.
const (
	Uint16 Type = iota
	Int32
	Int64
	Bool
)

// A Field is a column of values or, if List is set, of lists of them, whose Items may be nullable.
type Field struct {
	Name     string
	Type     Type
	Nullable bool // for readers; no value is null
	List     bool
	Items    bool
}

// The numbers that Arrow's metadata have for versions, messages and types.
const (
	metadataV5  = 4
	schemaKind  = 1
	batchKind   = 3
	integerType = 2
	boolType    = 6
	listType    = 12
)

// AppendSchema appends the message of a schema with pairs of metadata.
func AppendSchema(dst []byte, fields []Field, metadata [][2]string) []byte {
	columns := make([]flatbuf.Object, len(fields))
	for i, f := range fields {
		columns[i] = f.object()
	}
	schema := []flatbuf.Field{flatbuf.Ref(1, flatbuf.Vector(columns...))}
	var pairs []flatbuf.Object
	for _, p := range metadata {
		pairs = append(pairs, flatbuf.Pair(p[0], flatbuf.Text(p[1])))
	}
	if len(pairs) > 0 {
		schema = append(schema, flatbuf.Ref(2, flatbuf.Vector(pairs...)))
	}
	return appendMessage(dst, schemaKind, flatbuf.NewTable(4, schema...), 0)
}

func (f *Field) object() flatbuf.Object {
	if f.List {
		item := Field{Name: "item", Type: f.Type, Nullable: f.Items}
		return column(f.Name, f.Nullable, listType, flatbuf.NewTable(0), item.object())
	}
	if f.Type == Bool {
		return column(f.Name, f.Nullable, boolType, flatbuf.NewTable(0))
	}
	signed := uint64(1)
	if f.Type == Uint16 {
		signed = 0
	}
	return column(f.Name, f.Nullable, integerType, flatbuf.NewTable(2,
		flatbuf.Field{ID: 0, Size: 4, Value: uint64(8 * f.Type.bytes())}, flatbuf.Field{ID: 1, Size: 1, Value: signed}))
}

func column(name string, nullable bool, kind uint64, typ flatbuf.Object, children ...flatbuf.Object) flatbuf.Object {
	var null uint64
	if nullable {
		null = 1
	}
	return flatbuf.NewTable(7, flatbuf.Ref(0, flatbuf.Text(name)), flatbuf.Ref(3, typ),
		flatbuf.Ref(5, flatbuf.Vector(children...)), flatbuf.Field{ID: 1, Size: 1, Value: null},
		flatbuf.Field{ID: 2, Size: 1, Value: kind})
}

// AppendBatch appends the message of a record batch before its body. lengths are those of the columns, each list
// before its items; sizes are the bytes of all buffers, in the order of the body. A column has a buffer of
// validity, of no bytes, then that of a list's offsets or of the values.
func AppendBatch(dst []byte, rows int64, lengths, sizes []int64) []byte {
	nodes, buffers := make([]int64, 0, 2*len(lengths)), make([]int64, 0, 2*len(sizes))
	for _, n := range lengths {
		nodes = append(nodes, n, 0)
	}
	body := int64(0)
	for _, n := range sizes {
		buffers = append(buffers, body, n)
		body += n + Padding(n)
	}
	batch := flatbuf.NewTable(3, flatbuf.Field{ID: 0, Size: 8, Value: uint64(rows)},
		flatbuf.Ref(1, flatbuf.Structs(2, nodes...)), flatbuf.Ref(2, flatbuf.Structs(2, buffers...)))
	return appendMessage(dst, batchKind, batch, body)
}

// Padding returns how many bytes follow a buffer of n bytes.
func Padding(n int64) int64 { return -n & (Alignment - 1) }

// appendMessage appends a message whose body has so many bytes, and pads it so that the body is aligned.
func appendMessage(dst []byte, kind uint64, header flatbuf.Object, body int64) []byte {
	w := flatbuf.Writer{B: make([]byte, 4, 512), VtableAlign: 2}
	w.Refer(0, flatbuf.NewTable(5, flatbuf.Field{ID: 3, Size: 8, Value: uint64(body)}, flatbuf.Ref(2, header),
		flatbuf.Field{ID: 0, Size: 2, Value: metadataV5}, flatbuf.Field{ID: 1, Size: 1, Value: kind}))
	size := int64(8 + len(w.B))
	size += Padding(size)
	dst = binary.LittleEndian.AppendUint32(dst, 0xffffffff)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size-8))
	dst = append(dst, w.B...)
	return append(dst, make([]byte, size-8-int64(len(w.B)))...)
}

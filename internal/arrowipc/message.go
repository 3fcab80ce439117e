package arrowipc

import "encoding/binary"

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
	columns := make([]object, len(fields))
	for i, f := range fields {
		columns[i] = f.object()
	}
	values := make([]object, len(metadata))
	for i, pair := range metadata {
		values[i] = table(2, ref(0, text(pair[0])), ref(1, text(pair[1])))
	}
	schema := []field{ref(1, vector(columns...))}
	if len(values) > 0 {
		schema = append(schema, ref(2, vector(values...)))
	}
	return appendMessage(dst, schemaKind, table(4, schema...), 0)
}

func (f *Field) object() object {
	if f.List {
		item := Field{Name: "item", Type: f.Type, Nullable: f.Items}
		return column(f.Name, f.Nullable, listType, table(0), item.object())
	}
	if f.Type == Bool {
		return column(f.Name, f.Nullable, boolType, table(0))
	}
	bits := map[Type]uint64{Uint16: 16, Int32: 32, Int64: 64}[f.Type]
	signed := uint64(1)
	if f.Type == Uint16 {
		signed = 0
	}
	return column(f.Name, f.Nullable, integerType, table(2, field{id: 0, size: 4, value: bits},
		field{id: 1, size: 1, value: signed}))
}

func column(name string, nullable bool, kind uint64, typ object, children ...object) object {
	var null uint64
	if nullable {
		null = 1
	}
	return table(7, ref(0, text(name)), ref(3, typ), ref(5, vector(children...)),
		field{id: 1, size: 1, value: null}, field{id: 2, size: 1, value: kind})
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
	batch := table(3, field{id: 0, size: 8, value: uint64(rows)}, ref(1, pairs(nodes...)), ref(2, pairs(buffers...)))
	return appendMessage(dst, batchKind, batch, body)
}

// Padding returns how many bytes follow a buffer of n bytes.
func Padding(n int64) int64 { return -n & (Alignment - 1) }

// appendMessage appends a message whose body has so many bytes, and pads it so that the body is aligned.
func appendMessage(dst []byte, kind uint64, header object, body int64) []byte {
	w := buffer{b: make([]byte, 4, 512)}
	w.refer(0, table(5, field{id: 3, size: 8, value: uint64(body)}, ref(2, header),
		field{id: 0, size: 2, value: metadataV5}, field{id: 1, size: 1, value: kind}))
	size := int64(8 + len(w.b))
	size += Padding(size)
	dst = binary.LittleEndian.AppendUint32(dst, 0xffffffff)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size-8))
	dst = append(dst, w.b...)
	return append(dst, make([]byte, size-8-int64(len(w.b)))...)
}

package arrowipc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ErrCorrupt means that bytes are not a stream of the columns that this package knows.
var ErrCorrupt = errors.New("not a stream of record batches")

// maxMetadata bounds the metadata of a message.
const maxMetadata = 1 << 20

// A Reader reads the record batches of a stream. It trusts no number in it: a message takes memory as its bytes
// arrive.
type Reader struct {
	Fields []Field

	in     *bufio.Reader
	meta   bytes.Buffer
	body   bytes.Buffer
	values []extent // each column's, in body
}

// extent is a run of bytes.
type extent struct{ at, size int64 }

// NewReader reads the schema of a stream.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10)}
	schema, kind, err := r.message()
	if err == io.EOF || err == nil && kind != schemaKind {
		err = fmt.Errorf("%w: it begins without a schema", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	for _, column := range schema.tables(1) {
		f, ok := column.column()
		if !ok {
			return nil, fmt.Errorf("%w: the column %q has a type of its own", ErrCorrupt, f.Name)
		}
		r.Fields = append(r.Fields, f)
	}
	return r, nil
}

// Next reads the next record batch and returns its rows. It returns io.EOF after the end of the stream; a stream
// that ends before is an error.
func (r *Reader) Next() (rows int, err error) {
	batch, kind, err := r.message()
	if err != nil {
		return 0, err
	}
	rows = int(batch.number(0))
	nodes, buffers := batch.pairs(1), batch.pairs(2)
	if kind != batchKind || rows < 1 || rows > math.MaxInt32 {
		return 0, fmt.Errorf("%w: a message that is not a batch of rows", ErrCorrupt)
	}
	r.values = r.values[:0]
	for _, f := range r.Fields {
		// A column has a node and two buffers, of which a list's are before those of its items.
		n := 1
		if f.List {
			n = 2
		}
		if len(nodes) < n || len(buffers) < 2*n {
			return 0, fmt.Errorf("%w: a batch with other columns than its schema", ErrCorrupt)
		}
		items, values := nodes[n-1], buffers[2*n-1]
		if nodes[0] != [2]int64{int64(rows), 0} || items[1] != 0 || items[0]%int64(rows) != 0 || values[0] < 0 ||
			values[1] != items[0]*f.Type.bytes() || values[1] < 0 || values[0] > int64(r.body.Len())-values[1] {
			return 0, fmt.Errorf("%w: the column %s has %d values in %d bytes for %d rows", ErrCorrupt, f.Name, items[0],
				values[1], rows)
		}
		r.values = append(r.values, extent{values[0], values[1]})
		nodes, buffers = nodes[n:], buffers[2*n:]
	}
	return rows, nil
}

// Values returns the values of a column of the batch that Next read, or the items of all its lists. The caller
// owns them.
func (r *Reader) Values(column int) []int64 {
	at := r.values[column]
	return Ints(r.body.Bytes()[at.at:at.at+at.size], r.Fields[column].Type)
}

// Ints returns integers from their bytes.
func Ints(raw []byte, t Type) []int64 {
	out := make([]int64, len(raw)/int(t.bytes()))
	switch t {
	case Uint16:
		for i := range out {
			out[i] = int64(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case Int32:
		for i := range out {
			out[i] = int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		}
	default:
		for i := range out {
			out[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
	return out
}

// bytes returns the size of an integer.
func (t Type) bytes() int64 { return map[Type]int64{Uint16: 2, Int32: 4, Int64: 8}[t] }

// message reads a message: its kind, and the table that it has in its header. The body is then in r.body.
func (r *Reader) message() (header flatTable, kind int, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r.in, prefix[:]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return header, 0, fmt.Errorf("the stream ends without its end mark: %w", err)
	}
	if string(prefix[:]) == EndOfStream {
		if n, err := r.in.Read(prefix[:]); n > 0 {
			return header, 0, fmt.Errorf("%w: bytes after its end", ErrCorrupt)
		} else if err != io.EOF {
			return header, 0, err
		}
		return header, 0, io.EOF
	}
	size := int64(binary.LittleEndian.Uint32(prefix[4:]))
	if binary.LittleEndian.Uint32(prefix[:]) != 0xffffffff || size > maxMetadata {
		return header, 0, fmt.Errorf("%w: bytes that are no message", ErrCorrupt)
	}
	if err := r.fill(&r.meta, size); err != nil {
		return header, 0, err
	}
	data := flat(r.meta.Bytes())
	message := data.table(0)
	header, ok := message.table(2)
	body := message.number(3)
	if !ok || body < 0 {
		return header, 0, fmt.Errorf("%w: a message without a header", ErrCorrupt)
	}
	return header, int(data.uint(message.field(1), 1)), r.fill(&r.body, body)
}

// fill reads n bytes into a buffer.
func (r *Reader) fill(b *bytes.Buffer, n int64) error {
	b.Reset()
	_, err := io.CopyN(b, r.in, n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("the stream ends in a message: %w", err)
	}
	return nil
}

// column reads a field of a schema; ok is false for a type that the package does not know.
func (t flatTable) column() (f Field, ok bool) {
	f.Name = t.text(0)
	kind, items := t.f.uint(t.field(2), 1), t.tables(5)
	if f.List = kind == listType; f.List {
		if len(items) != 1 {
			return f, false
		}
		t = items[0]
		kind = t.f.uint(t.field(2), 1)
	}
	typ, _ := t.table(3)
	types := []Type{Uint16, Int32, Int64}
	i := slices.Index([]uint64{16, 32, 64}, typ.f.uint(typ.field(0), 4))
	if kind != integerType || i < 0 {
		return f, false
	}
	f.Type = types[i]
	return f, true
}

// flat is a flatbuffer. What lies outside it is 0.
type flat []byte

func (f flat) uint(at, size int) uint64 {
	if at < 0 || at > len(f)-size {
		return 0
	}
	var v [8]byte
	copy(v[:size], f[at:])
	return binary.LittleEndian.Uint64(v[:])
}

// follow returns what the offset at a place refers to.
func (f flat) follow(at int) int { return at + int(f.uint(at, 4)) }

// table returns the table to which the offset at a place refers.
func (f flat) table(at int) flatTable { return flatTable{f, f.follow(at)} }

// flatTable is a table in a flatbuffer. Its fields have numbers.
type flatTable struct {
	f  flat
	at int
}

// field returns where a field is, -1 if the table has none of this number.
func (t flatTable) field(id int) int {
	vtable := t.at - int(int32(t.f.uint(t.at, 4)))
	if at := int(t.f.uint(vtable+4+2*id, 2)); at > 0 && 4+2*id < int(t.f.uint(vtable, 2)) {
		return t.at + at
	}
	return -1
}

func (t flatTable) number(id int) int64 { return int64(t.f.uint(t.field(id), 8)) }

func (t flatTable) table(id int) (inner flatTable, ok bool) {
	at := t.field(id)
	return t.f.table(at), at > 0
}

// vector returns where a vector's elements begin, and how many of a size there are.
func (t flatTable) vector(id, size int) (at, n int) {
	if at = t.field(id); at < 0 {
		return 0, 0
	}
	at = t.f.follow(at)
	n = int(t.f.uint(at, 4))
	if at += 4; n > (len(t.f)-at)/size {
		return 0, 0
	}
	return at, n
}

func (t flatTable) tables(id int) (out []flatTable) {
	at, n := t.vector(id, 4)
	for i := range n {
		out = append(out, t.f.table(at+4*i))
	}
	return out
}

func (t flatTable) text(id int) string {
	at, n := t.vector(id, 1)
	return string(t.f[at : at+n])
}

// pairs returns a vector of structs of two numbers.
func (t flatTable) pairs(id int) (out [][2]int64) {
	at, n := t.vector(id, 16)
	for i := range n {
		out = append(out, [2]int64{int64(t.f.uint(at+16*i, 8)), int64(t.f.uint(at+16*i+8, 8))})
	}
	return out
}

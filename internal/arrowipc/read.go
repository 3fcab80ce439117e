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

	"github.com/dsload/dsload/internal/flatbuf"
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
	for column := range schema.Tables(1) {
		f, ok := fieldOf(column)
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
	rows = int(batch.Long(0))
	nodes, buffers := pairs(batch, 1), pairs(batch, 2)
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
func (r *Reader) message() (header flatbuf.Table, kind int, err error) {
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
	message := flatbuf.Of(r.meta.Bytes()).Root()
	header, ok := message.Table(2)
	body := message.Long(3)
	if !ok || body < 0 {
		return header, 0, fmt.Errorf("%w: a message without a header", ErrCorrupt)
	}
	return header, int(message.Byte(1, 0)), r.fill(&r.body, body)
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

// fieldOf reads a field of a schema; ok is false for a type that the package does not know.
func fieldOf(t flatbuf.Table) (f Field, ok bool) {
	name, _ := t.Text(nil, 0, maxMetadata)
	f.Name = string(name)
	if f.List = t.Byte(2, 0) == listType; f.List {
		items := slices.Collect(t.Tables(5))
		if len(items) != 1 {
			return f, false
		}
		t = items[0]
	}
	typ, _ := t.Table(3)
	i := slices.Index([]int{16, 32, 64}, typ.Int(0, 0))
	f.Type = Type(max(i, 0)) // Uint16, Int32, Int64
	return f, t.Byte(2, 0) == integerType && i >= 0
}

// pairs returns a vector of structs of two numbers.
func pairs(t flatbuf.Table, slot int) (out [][2]int64) {
	at, n := t.Vector(slot, 16)
	for i := range n {
		out = append(out, [2]int64{t.Int64(at + 16*i), t.Int64(at + 16*i + 8)})
	}
	return out
}

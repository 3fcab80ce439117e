package arrowipc

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// TestArrowReadsStreams writes a stream of all kinds of columns and reads it with arrow-go.
func TestArrowReadsStreams(t *testing.T) {
	fields := []Field{
		{Name: "ids", Type: Uint16, Nullable: true, List: true, Items: true},
		{Name: "wide", Type: Int64, List: true},
		{Name: "length", Type: Int32},
		{Name: "row", Type: Int64, Nullable: true},
		{Name: "mask", Type: Bool, Nullable: true},
	}
	metadata := [][2]string{{"a", "1"}, {"key", "värde"}}
	buffers := func(numbers ...any) (parts [][]byte) {
		for _, n := range numbers {
			var b bytes.Buffer
			if err := binary.Write(&b, binary.LittleEndian, n); err != nil {
				t.Fatal(err)
			}
			parts = append(parts, b.Bytes())
		}
		return parts
	}
	none := []byte{}
	stream := AppendSchema(nil, fields, metadata)
	for range 2 {
		parts := buffers(none, []int32{0, 2, 2, 5}, none, []uint16{1, 2, 3, 4, 65535},
			none, []int32{0, 0, 1, 2}, none, []int64{-1, 1 << 40},
			none, []int32{7, 8, 9}, none, []int64{1, 2, 3}, none, []byte{0b101})
		var sizes []int64
		for _, p := range parts {
			sizes = append(sizes, int64(len(p)))
		}
		stream = AppendBatch(stream, 3, []int64{3, 5, 3, 2, 3, 3, 3}, sizes)
		if len(stream)%Alignment != 0 {
			t.Fatalf("a body begins at byte %d", len(stream))
		}
		for _, p := range parts {
			stream = append(append(stream, p...), make([]byte, Padding(int64(len(p))))...)
		}
	}
	stream = append(stream, EndOfStream...)

	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	item := func(typ arrow.DataType, nullable bool) arrow.DataType {
		return arrow.ListOfField(arrow.Field{Name: "item", Type: typ, Nullable: nullable})
	}
	pairs := arrow.MetadataFrom(map[string]string{"a": "1", "key": "värde"})
	want := arrow.NewSchema([]arrow.Field{
		{Name: "ids", Type: item(arrow.PrimitiveTypes.Uint16, true), Nullable: true},
		{Name: "wide", Type: item(arrow.PrimitiveTypes.Int64, false)},
		{Name: "length", Type: arrow.PrimitiveTypes.Int32},
		{Name: "row", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "mask", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	}, &pairs)
	if got := r.Schema(); !got.Equal(want) || !got.Metadata().Equal(pairs) {
		t.Errorf("the schema is\n%s, want\n%s", got, want)
	}
	batches := 0
	for ; r.Next(); batches++ {
		b := r.RecordBatch()
		for i, want := range []string{"[[1 2] [] [3 4 65535]]", "[[] [-1] [1099511627776]]", "[7 8 9]", "[1 2 3]",
			"[true false true]"} {
			if got := b.Column(i).String(); got != want {
				t.Errorf("column %s is %s, want %s", fields[i].Name, got, want)
			}
		}
	}
	if err := r.Err(); err != nil || batches != 2 {
		t.Errorf("%d batches, %v", batches, err)
	}
}

func TestSchemaWithoutMetadata(t *testing.T) {
	stream := append(AppendSchema(nil, []Field{{Name: "x", Type: Int32}}, nil), EndOfStream...)
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if s := r.Schema(); s.NumFields() != 1 || s.Metadata().Len() != 0 {
		t.Errorf("the schema is %s", s)
	}
}

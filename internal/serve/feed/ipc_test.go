package feed

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawPlan(t *rapid.T) (*Opening, []*collate.Batch) {
	p := &Opening{
		Collate: collate.Options{
			PadID: 9, Left: rapid.Bool().Draw(t, "left"), Multiple: rapid.SampledFrom([]int{1, 8}).Draw(t,
				"multiple"), TokenBytes: 2,
			Labels: rapid.SampledFrom(collate.AllLabels[1:]).Draw(t, "labels"), Narrow: rapid.Bool().Draw(t, "narrow"),
			Packed: rapid.Bool().Draw(t, "packed"),
		},
		Mixed:    rapid.Bool().Draw(t, "mixed"),
		Metadata: map[string]string{"dsload.rows": "17", "a": "ü"},
	}
	var batches []*collate.Batch
	for range rapid.IntRange(0, 4).Draw(t, "batches") {
		b := collate.New(p.Collate)
		tokens := rapid.SliceOfN(rapid.Byte(), 0, 60)
		for i := range rapid.IntRange(1, 20).Draw(t, "rows") {
			ids, labels := tokens.Draw(t, "ids"), tokens.Draw(t, "labels")
			ids, labels = ids[:len(ids)/2*2], labels[:len(labels)/2*2]
			if err := addRow(b, p.Collate, collate.Buffers{IDs: ids, Labels: labels,
				Segments: slices.Repeat([]int32{int32(len(ids) / 2)}, min(1, len(ids)))},
				collate.Row{Example: int64(i) << 33, Position: int64(i) - 1, Source: int32(i)}); err != nil {
				t.Fatal(err)
			}
		}
		b.Next = rapid.Int64().Draw(t, "next")
		if err := b.Seal(); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	return p, batches
}

type fataler interface{ Fatal(...any) }

// paddedSchema is the schema of a plan's padded batches, as arrow-go reads it.
func paddedSchema(t fataler, p *Opening, narrow bool) *arrow.Schema {
	r, err := ipc.NewReader(io.MultiReader(bytes.NewReader(newEncoder(p, narrow).schema), bytes.NewReader(endOfStream)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	return r.Schema()
}

// wire is the body of a response through a piece of the given size.
func wire(t fataler, p *Opening, narrow bool, batches []*collate.Batch, piece int) []byte {
	enc := newEncoder(p, narrow)
	var out bytes.Buffer
	w := newWriter(&out, enc, piece)
	w.message(enc.schema)
	for _, b := range batches {
		if err := w.batch(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// dechunk checks that the body is chunks of one message each, and returns the messages.
func dechunk(t fataler, body []byte) (messages [][]byte) {
	for {
		line, rest, found := strings.Cut(string(body), "\r\n")
		n, err := strconv.ParseInt(line, 16, 64)
		if !found || err != nil || int(n)+2 > len(rest) || rest[n:n+2] != "\r\n" {
			t.Fatal("no chunk at the place of one")
		}
		if n == 0 {
			if rest != "\r\n" {
				t.Fatal("bytes after the last chunk")
			}
			return messages
		}
		messages = append(messages, []byte(rest[:n]))
		body = []byte(rest[n+2:])
	}
}

// slowRecord makes with arrow-go's builders the record that a batch should be.
func slowRecord(t fataler, p *Opening, narrow bool, b *collate.Batch) arrow.RecordBatch {
	schema := paddedSchema(t, p, narrow)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer rb.Release()
	f := 0
	for c := collate.InputIDs; c <= collate.SegmentIDs; c++ {
		if !b.Has(c) || !schema.HasField(paddedColumns[c]) {
			continue
		}
		list := rb.Field(f).(*array.ListBuilder)
		f++
		values := make([]byte, b.Rows()*b.Length(c)*8)
		b.Fill(values, c, 8, 0)
		for range b.Rows() {
			list.Append(true)
			for range b.Length(c) {
				v := int64(binary.LittleEndian.Uint64(values))
				values = values[8:]
				switch elements := list.ValueBuilder().(type) {
				case *array.Uint16Builder:
					elements.Append(uint16(v))
				case *array.Int32Builder:
					elements.Append(int32(v))
				case *array.Int64Builder:
					elements.Append(v)
				}
			}
		}
	}
	for i := range b.Rows() {
		rb.Field(f).(*array.Int32Builder).Append(b.RowLength(i))
		rb.Field(f + 1).(*array.Int64Builder).Append(b.Example(i))
		rb.Field(f + 2).(*array.Int64Builder).Append(b.Position(i))
		rb.Field(f + 3).(*array.Int64Builder).Append(b.Next)
		if p.Mixed {
			rb.Field(f + 4).(*array.Int32Builder).Append(b.SourceOf(i))
		}
	}
	return rb.NewRecordBatch()
}

// What the hand-made encoder writes, arrow-go reads as the records that arrow-go would have made,
// and its own writer agrees on every value.
func TestMessagesAreWhatArrowMakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, batches := drawPlan(t)
		narrow := rapid.Bool().Draw(t, "narrow wire")
		messages := dechunk(t, wire(t, p, narrow, batches, 1<<20))
		if len(messages) != len(batches)+2 || !bytes.Equal(messages[len(messages)-1], endOfStream) {
			t.Fatalf("%d messages for %d batches", len(messages), len(batches))
		}
		for _, m := range messages[1 : len(messages)-1] {
			if len(m)%8 != 0 || (int(binary.LittleEndian.Uint32(m[4:]))+8)%64 != 0 {
				t.Fatal("body is not aligned")
			}
		}
		var theirs bytes.Buffer
		writer := ipc.NewWriter(&theirs, ipc.WithSchema(paddedSchema(t, p, narrow)))
		for _, b := range batches {
			rec := slowRecord(t, p, narrow, b)
			if err := writer.Write(rec); err != nil {
				t.Fatal(err)
			}
			rec.Release()
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		ours, err := ipc.NewReader(bytes.NewReader(bytes.Join(messages, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Release()
		reference, err := ipc.NewReader(&theirs)
		if err != nil {
			t.Fatal(err)
		}
		defer reference.Release()
		if !ours.Schema().Equal(reference.Schema()) {
			t.Fatalf("schema %v, want %v", ours.Schema(), reference.Schema())
		}
		for i := range batches {
			if !ours.Next() || !reference.Next() {
				t.Fatalf("batch %d is missing: %v", i, ours.Err())
			}
			if !array.RecordEqual(ours.RecordBatch(), reference.RecordBatch()) {
				t.Fatalf("batch %d:\n%v\nwant\n%v", i, ours.RecordBatch(), reference.RecordBatch())
			}
		}
		if ours.Next() {
			t.Fatal("one batch too many")
		}
	})
}

// The piece decides how many writes there are, never what is written.
func TestPieceChangesNoByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, batches := drawPlan(t)
		narrow := rapid.Bool().Draw(t, "narrow wire")
		whole := wire(t, p, narrow, batches, 1<<20)
		for _, piece := range []int{minPiece, minPiece + 1, minPiece + 5, 8000} {
			if !bytes.Equal(whole, wire(t, p, narrow, batches, piece)) {
				t.Fatalf("other bytes with a piece of %d", piece)
			}
		}
	})
}

func TestWriterAllocatesNothing(t *testing.T) {
	p := &Opening{Collate: collate.Options{TokenBytes: 2}}
	b := collate.New(p.Collate)
	for range 32 {
		if err := addRow(b, p.Collate, collate.Buffers{IDs: make([]byte, 40)}, collate.Row{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Seal(); err != nil {
		t.Fatal(err)
	}
	enc := newEncoder(p, false)
	w := newWriter(discard{}, enc, smallPiece)
	if n := testing.AllocsPerRun(100, func() {
		if err := w.batch(b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkWriter(b *testing.B) {
	for name, shape := range map[string][2]int{"32x20": {32, 20}, "256x512": {256, 512}} {
		b.Run(name, func(b *testing.B) {
			p := &Opening{Collate: collate.Options{TokenBytes: 2}}
			batch := collate.New(p.Collate)
			for range shape[0] {
				if err := addRow(batch, p.Collate, collate.Buffers{IDs: make([]byte, 2*shape[1])},
					collate.Row{}); err != nil {
					b.Fatal(err)
				}
			}
			if err := batch.Seal(); err != nil {
				b.Fatal(err)
			}
			enc := newEncoder(p, false)
			w := newWriter(discard{}, enc, extras[0].piece)
			for b.Loop() {
				if err := w.batch(batch); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(w.bytes / int64(b.N))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(shape[0]), "ns/row")
		})
	}
}

func TestSchemaIsAsDocumented(t *testing.T) {
	numbers := []string{"length int32", "example int64", "row int64", "next int64", "dataset int32"}
	packed := collate.Options{TokenBytes: 2, Packed: true, MaskBorders: true}
	for _, c := range []struct {
		options collate.Options
		narrow  bool
		want    []string
	}{
		{collate.Options{Packed: true, Narrow: true}, false, []string{
			"input_ids list<item: int32>", "attention_mask list<item: int32>", "labels list<item: int32>",
			"position_ids list<item: int32>", "segments list<item: int32>"}},
		{collate.Options{TokenBytes: 2}, true, []string{"input_ids list<item: uint16>"}},
		{collate.Options{TokenBytes: 4}, true, []string{"input_ids list<item: int32>"}},
		{collate.Options{TokenBytes: 2, LossMask: true}, true, []string{"input_ids list<item: uint16>",
			"labels list<item: int32>"}},
		{collate.Options{TokenBytes: 2, Labels: collate.Seq2Seq}, true, []string{"input_ids list<item: uint16>",
			"labels list<item: int32>"}},
		{packed, true, []string{"input_ids list<item: uint16>", "labels list<item: int32>",
			"position_ids list<item: int32>", "segments list<item: int32>"}},
	} {
		var got []string
		for _, f := range paddedSchema(t, &Opening{Collate: c.options, Mixed: true}, c.narrow).Fields() {
			got = append(got, f.Name+" "+strings.ReplaceAll(f.Type.String(), ", nullable", ""))
		}
		if diff := cmp.Diff(append(c.want, numbers...), got); diff != "" {
			t.Errorf("%+v narrow %v: %s", c.options, c.narrow, diff)
		}
	}
}

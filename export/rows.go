package export

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// MaxRowTokens is the longest document in formats whose rows are held whole in memory.
const MaxRowTokens = 2 << 20

// document gathers the columns of a document.
type document struct {
	number int64
	input  []byte
	labels []byte
	mask   []bool
}

// rows is the common part of sinks for whole rows: it gathers a document and passes it to add.
type rows struct {
	format string
	width  int // bytes of an id
	doc    document
	add    func(d *document) error
}

func (r *rows) begin(number int64) error {
	if cap(r.doc.input) > 2*pieceBytes {
		r.doc = document{} // do not keep the memory of a long document
	}
	r.doc.number = number
	r.doc.input, r.doc.labels, r.doc.mask = r.doc.input[:0], r.doc.labels[:0], r.doc.mask[:0]
	return nil
}

func (r *rows) ids(raw []byte, extras *rowExtras) error {
	if n := (len(r.doc.input) + len(raw)) / r.width; n > MaxRowTokens {
		return tooLong(r.format,
			"document %d has more than %d tokens, which a row of this format cannot hold; "+
				"export megatron, nanotron, nanogpt or olmo, "+
				"which have no such limit", r.doc.number, MaxRowTokens)
	}
	r.doc.input = append(r.doc.input, raw...)
	if extras != nil {
		r.doc.labels = append(r.doc.labels, extras.labels...)
		r.doc.mask = append(r.doc.mask, extras.mask...)
	}
	return nil
}

func (r *rows) end() error { return r.add(&r.doc) }

// columns makes Arrow record batches of documents: input_ids, and labels and loss_mask if the
// dataset has them.
type columns struct {
	schema *arrow.Schema
	width  int
	batch  *array.RecordBuilder
	bytes  int64 // of the values in batch
	rows   int64
}

const (
	batchBytes = 2 << 20
	batchRows  = 16 << 10
)

func newColumns(width int, labels, mask bool, metadata *arrow.Metadata) *columns {
	var id arrow.DataType = arrow.PrimitiveTypes.Uint16
	if width == 4 {
		id = arrow.PrimitiveTypes.Int32
	}
	fields := []arrow.Field{{Name: "input_ids", Type: arrow.ListOf(id), Nullable: true}}
	if labels {
		fields = append(fields, arrow.Field{Name: "labels", Type: arrow.ListOf(id), Nullable: true})
	}
	if mask {
		fields = append(fields, arrow.Field{Name: "loss_mask", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean),
			Nullable: true})
	}
	return &columns{schema: arrow.NewSchema(fields, metadata), width: width}
}

// add appends a document and reports whether the batch is full.
func (c *columns) add(d *document) (full bool) {
	if c.batch == nil {
		c.batch = array.NewRecordBuilder(memory.DefaultAllocator, c.schema)
	}
	for i, f := range c.schema.Fields() {
		list := c.batch.Field(i).(*array.ListBuilder)
		list.Append(true)
		switch f.Name {
		case "input_ids":
			c.appendIDs(list.ValueBuilder(), d.input)
		case "labels":
			c.appendIDs(list.ValueBuilder(), d.labels)
		case "loss_mask":
			list.ValueBuilder().(*array.BooleanBuilder).AppendValues(d.mask, nil)
		}
	}
	c.rows++
	c.bytes += int64(len(d.input) + len(d.labels))
	return c.bytes >= batchBytes || c.rows >= batchRows
}

func (c *columns) appendIDs(b array.Builder, raw []byte) {
	switch b := b.(type) {
	case *array.Uint16Builder:
		b.AppendValues(arrow.Uint16Traits.CastFromBytes(raw), nil)
	case *array.Int32Builder:
		b.AppendValues(arrow.Int32Traits.CastFromBytes(raw), nil)
	}
}

// take returns the batch, or nil if it has no rows, and begins another. The caller releases it.
func (c *columns) take() arrow.RecordBatch {
	if c.rows == 0 {
		return nil
	}
	rec := c.batch.NewRecordBatch()
	c.batch.Release()
	c.batch, c.rows, c.bytes = nil, 0, 0
	return rec
}

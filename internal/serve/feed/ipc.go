package feed

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/dsload/dsload/internal/arrowipc"
	"github.com/dsload/dsload/internal/serve/collate"
)

// The metadata of a record batch is a flatbuffer whose shape depends on the schema alone: all
// batches of a stream differ in a few integers at fixed offsets. So it is laid out once by hand and
// patched for each batch; package arrowipc makes the schema message. Tests check the bytes with
// arrow-go's reader and pyarrow's verifier.
//
// Layout, offsets from the flatbuffer's beginning (Message.fbs and Schema.fbs of the Arrow format,
// metadata version V5):
//
//	 0  root: offset of the Message table
//	 4  vtable of Message: 12, 20, version at 16, header type at 18, header at 4, body length at 8
//	16  Message: vtable offset, header offset, body length, version, header type
//	36  vtable of RecordBatch: 10, 20, length at 8, nodes at 4, buffers at 16; 2 bytes of padding
//	48  RecordBatch: vtable offset, nodes offset, length, buffers offset
//	68  nodes: count, then {length, null count} for each field, depth first
//	    4 bytes of padding, buffers: count, then {offset, length} for each
const (
	fbMessage     = 16
	fbBodyLength  = fbMessage + 8
	fbRecordBatch = 48
	fbNumRows     = fbRecordBatch + 8
	fbNodes       = 72

	metadataV5        = 4
	headerRecordBatch = 3
	prefixBytes       = 8 // continuation marker and metadata size
	alignment         = arrowipc.Alignment
)

// endOfStream is the marker that ends an Arrow stream.
var endOfStream = []byte(arrowipc.EndOfStream)

// paddedColumns names the list columns.
var paddedColumns = map[collate.Column]string{
	collate.InputIDs: "input_ids", collate.AttentionMask: "attention_mask", collate.LabelIDs: "labels",
	collate.PositionIDs: "position_ids", collate.SegmentIDs: "segments",
}

// listColumn is a padded column on the wire.
type listColumn struct {
	collate.Column
	width int // bytes of an element
}

// elementTypes are the Arrow types of elements by their width.
var elementTypes = map[int]arrowipc.Type{2: arrowipc.Uint16, 4: arrowipc.Int32, 8: arrowipc.Int64}

// encoder makes the messages of one stream.
type encoder struct {
	lists   []listColumn
	plain   []arrowipc.Field // the columns that are not lists
	mixed   bool             // they have dataset
	sources bool             // they end with source
	head    []byte           // metadata of the record batch, prefix and padding included
	buffers int              // offset in head of the first buffer's {offset, length}
	schema  []byte
}

func newEncoder(p *Opening, narrow bool) *encoder {
	e := &encoder{lists: listColumns(p.Collate, narrow), mixed: p.Mixed || p.Sources, sources: p.Sources, plain: []arrowipc.Field{
		{Name: "length", Type: arrowipc.Int32}, {Name: "example", Type: arrowipc.Int64},
		{Name: "row", Type: arrowipc.Int64}, {Name: "next", Type: arrowipc.Int64}}}
	if e.mixed {
		e.plain = append(e.plain, arrowipc.Field{Name: "dataset", Type: arrowipc.Int32})
	}
	if e.sources {
		e.plain = append(e.plain, arrowipc.Field{Name: "source", Type: arrowipc.Int32})
	}
	e.layout()
	var metadata [][2]string
	for _, key := range slices.Sorted(maps.Keys(p.Metadata)) {
		metadata = append(metadata, [2]string{key, p.Metadata[key]})
	}
	var fields []arrowipc.Field
	for _, c := range e.lists {
		fields = append(fields, arrowipc.Field{Name: paddedColumns[c.Column], Type: elementTypes[c.width], List: true})
	}
	e.schema = arrowipc.AppendSchema(nil, append(fields, e.plain...), metadata)
	return e
}

// listColumns returns the list columns of batches. Narrow ones have ids as wide as in the shards and
// four bytes for the rest, and leave out what follows from other columns: attention_mask from length,
// and causal labels from input_ids and length, unless tokens are ignored.
func listColumns(o collate.Options, narrow bool) (lists []listColumn) {
	shape := collate.New(o)
	for c := collate.InputIDs; c <= collate.SegmentIDs; c++ {
		column := listColumn{c, shape.Width()}
		if narrow {
			column.width = 4
		}
		switch {
		case !shape.Has(c), narrow && c == collate.AttentionMask, narrow && c == collate.LabelIDs && o.LabelsAreIDs():
			continue
		case narrow && c == collate.InputIDs:
			column.width = shape.TokenBytes()
		}
		lists = append(lists, column)
	}
	return lists
}

// layout fills head, with zeros for what differs between batches.
func (e *encoder) layout() {
	nodes := 2*len(e.lists) + len(e.plain)
	buffers := 4*len(e.lists) + 2*len(e.plain)
	fb := make([]byte, fbNodes+16*nodes+8+16*buffers)
	u16 := func(at int, values ...uint16) {
		for i, v := range values {
			binary.LittleEndian.PutUint16(fb[at+2*i:], v)
		}
	}
	u32 := func(at, v int) { binary.LittleEndian.PutUint32(fb[at:], uint32(v)) }

	u32(0, fbMessage)
	u16(4, 12, 20, 16, 18, 4, 8)
	u32(fbMessage, fbMessage-4)
	u32(fbMessage+4, fbRecordBatch-(fbMessage+4))
	u16(fbMessage+16, metadataV5)
	fb[fbMessage+18] = headerRecordBatch
	u16(36, 10, 20, 8, 4, 16)
	u32(fbRecordBatch, fbRecordBatch-36)
	u32(fbRecordBatch+4, fbNodes-4-(fbRecordBatch+4))
	u32(fbNodes-4, nodes)
	e.buffers = fbNodes + 16*nodes + 8
	u32(fbRecordBatch+16, e.buffers-4-(fbRecordBatch+16))
	u32(e.buffers-4, buffers)

	size := roundUp(prefixBytes+len(fb), alignment)
	e.head = make([]byte, size)
	binary.LittleEndian.PutUint32(e.head, 0xffffffff)
	binary.LittleEndian.PutUint32(e.head[4:], uint32(size-prefixBytes))
	copy(e.head[prefixBytes:], fb)
	e.buffers += prefixBytes
}

// prepare patches head for a batch and returns the size of the whole message.
func (e *encoder) prepare(b *collate.Batch) int64 {
	rows := int64(b.Rows())
	put := func(at int, v int64) { binary.LittleEndian.PutUint64(e.head[at:], uint64(v)) }
	put(prefixBytes+fbNumRows, rows)
	node, buffer, offset := prefixBytes+fbNodes, e.buffers, int64(0)
	addNode := func(length int64) {
		put(node, length)
		node += 16
	}
	addBuffer := func(size int64) {
		put(buffer, offset)
		put(buffer+8, size)
		buffer += 16
		offset += int64(roundUp(int(size), alignment))
	}
	for _, c := range e.lists {
		elements := rows * int64(b.Length(c.Column))
		addNode(rows)
		addNode(elements)
		addBuffer(0) // validity: nothing is null
		addBuffer(4 * (rows + 1))
		addBuffer(0)
		addBuffer(elements * int64(c.width))
	}
	for _, f := range e.plain {
		addNode(rows)
		addBuffer(0)
		if f.Type == arrowipc.Int32 {
			addBuffer(4 * rows)
		} else {
			addBuffer(8 * rows)
		}
	}
	put(prefixBytes+fbBodyLength, offset)
	return int64(len(e.head)) + offset
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

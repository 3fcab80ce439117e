package shardfile

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/dsload/dsload/internal/flatbuf"
)

// The part of the Arrow IPC file format (arrow.apache.org/docs/format/Columnar.html) that shards
// use. Writers and readers both call these functions: a reader never parses metadata, but compares
// them with what they must be.

const (
	arrowMagic      = "ARROW1"
	headMagicBytes  = 8                          // the magic, padded
	continuation    = 0xFFFFFFFF                 // before each message's length
	messageHead     = 8                          // both
	metadataV5      = 4                          // MetadataVersion.V5
	headerSchema    = 1                          // MessageHeader.Schema
	headerBatch     = 3                          // MessageHeader.RecordBatch
	BufferAlign     = 64                         // messages in the file and buffers in a body
	blockBytes      = 24                         // struct Block
	FooterTailBytes = int64(4 + len(arrowMagic)) // the footer's length, the magic
	EndOfStream     = "\xff\xff\xff\xff\x00\x00\x00\x00"
	FormatVersion   = 1
	FormatKey       = "dsload.format"
	batchRowsKey    = "dsload.batch_rows"
	batchRowsDigits = 4 // hexadecimal, a batch
	batchCRCKey     = "dsload.batch_crc32"
	batchCRCDigits  = 8
	footerBytes     = blockBytes + batchRowsDigits + batchCRCDigits // a record batch adds to a footer
	headCRCKey      = "dsload.head_crc32"
	contentKey      = "dsload.blake3"
	contentDigits   = 64
)

// Block is a record batch of a shard. Its message begins where the previous batch ends.
type Block struct {
	Body int64  // bytes
	Rows uint32 // at most MaxBatchRows
	Crc  uint32 // CRC-32 of message and body
}

// Layout is the part of a shard's metadata that follows from its schema.
type Layout struct {
	Schema     Shape
	Cols       []Column
	ColIndex   [NumColumns]int
	Head       []byte // the file's first bytes, up to the first record batch
	MetaLen    int64  // bytes of a record batch's message before its body
	template   []byte // such a message's bytes
	bodyAt     int    // where in it the body's length is
	lengthAt   int    // the row count
	nodesAt    int    // the FieldNodes
	buffers    int    // where in it the Buffers are
	numBufs    int
	noBlocks   int           // bytes from the end of stream on of a shard without record batches
	noBlocksAt footerOffsets // in them
}

func NewLayout(s Shape) *Layout {
	l := &Layout{Schema: s, Cols: s.columns(), ColIndex: s.columnIndexes()}

	l.Head = append([]byte(arrowMagic), make([]byte, headMagicBytes-len(arrowMagic))...)
	l.Head = append(l.Head, message(headerSchema, l.schemaTable(), headMagicBytes, new(int))...)
	nodes := 0
	for _, c := range l.Cols {
		nodes++
		l.numBufs += 2
		if c.List {
			nodes++
			l.numBufs += 2
		}
	}
	batch := flatbuf.NewTable(3, flatbuf.Field{ID: 0, Size: 8},
		flatbuf.Ref(1, flatbuf.Mark(&l.nodesAt, flatbuf.Structs(2, make([]int64, 2*nodes)...))),
		flatbuf.Ref(2, flatbuf.Mark(&l.buffers, flatbuf.Structs(2, make([]int64, 2*l.numBufs)...))))
	l.template = message(headerBatch, flatbuf.Mark(&l.lengthAt, batch), 0, &l.bodyAt)
	l.bodyAt += messageHead + flatbuf.FirstField
	l.lengthAt += messageHead + flatbuf.FirstField
	l.nodesAt += messageHead + flatbuf.CountBytes
	l.buffers += messageHead + flatbuf.CountBytes
	l.MetaLen = int64(len(l.template))
	empty, at := l.footerAndOffsets(nil, [32]byte{})
	l.noBlocks, l.noBlocksAt = len(empty), at
	return l
}

// writer returns one of metadata, which the root's offset begins.
func writer(size int) flatbuf.Writer { return flatbuf.Writer{B: make([]byte, 4, size), VtableAlign: 8} }

// message makes a message at an offset of a file, padded so that the body is aligned. table is where its table begins,
// after messageHead bytes.
func message(kind uint64, header flatbuf.Object, at int, table *int) []byte {
	w := writer(512)
	w.Refer(0, flatbuf.Mark(table, flatbuf.NewTable(5, flatbuf.Field{ID: 3, Size: 8}, flatbuf.Ref(2, header),
		flatbuf.Field{ID: 0, Size: 2, Value: metadataV5}, flatbuf.Field{ID: 1, Size: 1, Value: kind})))
	size := messageHead + len(w.B)
	size += -(at + size) & (BufferAlign - 1)
	out := make([]byte, messageHead, size)
	binary.LittleEndian.PutUint32(out, continuation)
	binary.LittleEndian.PutUint32(out[4:], uint32(size-messageHead))
	return append(out, w.B...)[:size]
}

func (l *Layout) schemaTable() flatbuf.Object {
	columns := make([]flatbuf.Object, len(l.Cols))
	for i, c := range l.Cols {
		if columns[i] = valueTable(c.Name, c.Value); c.List {
			columns[i] = fieldTable(c.Name, 12, flatbuf.NewTable(0), valueTable("item", c.Value)) // Type.List
		}
	}
	return flatbuf.NewTable(4, flatbuf.Ref(1, flatbuf.Vector(columns...)),
		flatbuf.Ref(2, flatbuf.Vector(flatbuf.Pair(FormatKey, flatbuf.Text(strconv.Itoa(FormatVersion))))),
		flatbuf.Field{ID: 0, Size: 2})
}

// valueTable is the Field of a column of values, or of the items of lists.
func valueTable(name string, t ValueType) flatbuf.Object {
	const integer, boolean = 2, 6 // Type.Int and Type.Bool
	bits, signed := uint64(16), uint64(0)
	switch t {
	case TypeBool:
		return fieldTable(name, boolean, flatbuf.NewTable(0))
	case typeUint16:
	default:
		bits, signed = uint64(8*t.Bytes(1)), 1
	}
	return fieldTable(name, integer, flatbuf.NewTable(2, flatbuf.Field{ID: 0, Size: 4, Value: bits},
		flatbuf.Field{ID: 1, Size: 1, Value: signed}))
}

// fieldTable is a nullable Field. It has a list of children even where that is empty, on which some readers insist.
func fieldTable(name string, kind uint64, typ flatbuf.Object, children ...flatbuf.Object) flatbuf.Object {
	return flatbuf.NewTable(7, flatbuf.Ref(0, flatbuf.Text(name)), flatbuf.Ref(3, typ),
		flatbuf.Ref(5, flatbuf.Vector(children...)), flatbuf.Field{ID: 1, Size: 1, Value: 1},
		flatbuf.Field{ID: 2, Size: 1, Value: kind})
}

// ColumnPlace locates a column's buffers in a body. Only list columns use offsets.
type ColumnPlace struct {
	OffsetsAt, OffsetsLen int64
	ValuesAt, ValuesLen   int64
}

// Place lays out the body of a batch of the given number of rows, and returns its length. values[i]
// is the number of values of the i-th column; for a list, of its items.
func (l *Layout) Place(dst []ColumnPlace, rows int64, values []int64) ([]ColumnPlace, int64) {
	pos := int64(0)
	for i, c := range l.Cols {
		var p ColumnPlace
		if c.List {
			p.OffsetsAt, p.OffsetsLen = pos, 4*(rows+1)
			pos += Align64(p.OffsetsLen)
		}
		p.ValuesAt, p.ValuesLen = pos, c.Value.Bytes(values[i])
		pos += Align64(p.ValuesLen)
		dst = append(dst, p)
	}
	return dst, pos
}

func Align64(n int64) int64 { return (n + BufferAlign - 1) &^ (BufferAlign - 1) }

// AppendBatchMeta appends the message that precedes the body of a batch.
func (l *Layout) AppendBatchMeta(dst []byte, rows int64, values []int64, places []ColumnPlace, body int64) []byte {
	start := len(dst)
	dst = append(dst, l.template...)
	m := dst[start:]
	put := func(at int, v int64) { binary.LittleEndian.PutUint64(m[at:], uint64(v)) }
	put(l.bodyAt, body)
	put(l.lengthAt, rows)
	node, buf := l.nodesAt, l.buffers
	for i, c := range l.Cols {
		p := places[i]
		if c.List {
			put(node, rows) // its null count stays 0
			node += 16
			put(buf, p.OffsetsAt) // validity: no bytes
			put(buf+16, p.OffsetsAt)
			put(buf+24, p.OffsetsLen)
			buf += 32
		}
		put(node, values[i])
		node += 16
		put(buf, p.ValuesAt)
		put(buf+16, p.ValuesAt)
		put(buf+24, p.ValuesLen)
		buf += 32
	}
	return dst
}

// Footer returns everything after the last record batch: end of stream, footer, its length, magic.
// content is the BLAKE3 of everything before.
func (l *Layout) Footer(blocks []Block, content [32]byte) []byte {
	out, _ := l.footerAndOffsets(blocks, content)
	return out
}

// footerOffsets are the offsets of the parts of a footer that differ between shards: the first
// Block, and the digits of the content's checksum, the batches' checksums and their row counts.
type footerOffsets struct{ blocks, content, crcs, rows int }

// footerAndOffsets returns a footer and the offsets of its parts. The parts whose length does not depend
// on the number of blocks come first and those that grow by 4 bytes a block last, so the offsets
// move with that number as ReadFooter computes.
func (l *Layout) footerAndOffsets(blocks []Block, content [32]byte) (out []byte, at footerOffsets) {
	places := make([]int64, 0, 3*len(blocks))
	pos := int64(len(l.Head))
	rows, crcs := make([]byte, 0, batchRowsDigits*len(blocks)), make([]byte, 0, batchCRCDigits*len(blocks))
	for _, b := range blocks {
		places = append(places, pos, l.MetaLen, b.Body) // metaDataLength is an int32 and its padding
		pos += l.MetaLen + b.Body
		rows, crcs = appendHex(rows, b.Rows, batchRowsDigits), appendHex(crcs, b.Crc, batchCRCDigits)
	}
	pair := func(key, value string, at *int) flatbuf.Object {
		return flatbuf.Pair(key, flatbuf.Mark(at, flatbuf.Text(value)))
	}
	w := writer(1024 + len(blocks)*footerBytes)
	w.Refer(0, flatbuf.NewTable(5, flatbuf.Ref(1, l.schemaTable()), flatbuf.Ref(2, flatbuf.Structs(3)),
		flatbuf.Ref(3, flatbuf.Mark(&at.blocks, flatbuf.Structs(3, places...))),
		flatbuf.Ref(4, flatbuf.Vector(pair(contentKey, hex.EncodeToString(content[:]), &at.content),
			pair(headCRCKey, fmt.Sprintf("%08x", crc32.ChecksumIEEE(l.Head)), new(int)),
			pair(batchCRCKey, string(crcs), &at.crcs), pair(batchRowsKey, string(rows), &at.rows))),
		flatbuf.Field{ID: 0, Size: 2, Value: metadataV5}))
	for _, at := range []*int{&at.blocks, &at.content, &at.crcs, &at.rows} {
		*at += len(EndOfStream) + flatbuf.CountBytes
	}
	w.Align(8)
	out = append([]byte(EndOfStream), w.B...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(w.B)))
	return append(out, arrowMagic...), at
}

// appendHex appends a number as hexadecimal digits, with zeros in front. Opening a shard makes two
// numbers for each of its record batches.
func appendHex(dst []byte, v uint32, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[v>>shift&15])
	}
	return dst
}

// parseHex returns the number that appendHex wrote, and any number for other digits.
func parseHex(digits []byte) (v uint32) {
	for _, c := range digits {
		v = v<<4 + uint32(c&15+c>>6*9) // letters follow 0x40 and 0x60, and a is 1 there
	}
	return v
}

// ReadFooter returns the blocks and the content's checksum from the end of a shard. tail begins
// with the end of the stream, at offset dataEnd. ReadFooter accepts only what footer makes: it compares
// the two in the end.
func (l *Layout) ReadFooter(tail []byte, dataEnd int64) (blocks []Block, content [32]byte, ok bool) {
	at := l.noBlocksAt
	if len(tail) < l.noBlocks {
		return nil, content, false
	}
	// Blocks are 24 bytes, so what follows them moves by a multiple of its alignment.
	n := int64(binary.LittleEndian.Uint32(tail[at.blocks-4:]))
	if n < 1 || n*footerBytes > int64(len(tail)-l.noBlocks+8) {
		return nil, content, false
	}
	at.content += int(n) * blockBytes
	at.crcs += int(n) * blockBytes
	at.rows += int(n) * (blockBytes + batchCRCDigits)
	if at.rows+int(n)*batchRowsDigits > len(tail) {
		return nil, content, false
	}
	blocks = make([]Block, n)
	end := int64(len(l.Head))
	for i := range blocks {
		k := Block{Body: int64(binary.LittleEndian.Uint64(tail[at.blocks+blockBytes*i+16:])),
			Rows: parseHex(tail[at.rows+batchRowsDigits*i:][:batchRowsDigits]),
			Crc:  parseHex(tail[at.crcs+batchCRCDigits*i:][:batchCRCDigits])}
		if k.Rows < 1 || k.Rows > MaxBatchRows || k.Body < 0 || k.Body > dataEnd {
			return nil, content, false
		}
		blocks[i] = k
		end += l.MetaLen + k.Body
		if k.Body%BufferAlign != 0 || end > dataEnd {
			return nil, content, false
		}
	}
	if _, err := hex.Decode(content[:], tail[at.content:at.content+contentDigits]); err != nil {
		return nil, content, false
	}
	if end != dataEnd || string(l.Footer(blocks, content)) != string(tail) {
		return nil, content, false
	}
	return blocks, content, true
}

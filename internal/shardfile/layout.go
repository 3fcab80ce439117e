package shardfile

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
)

// The part of the Arrow IPC file format (arrow.apache.org/docs/format/Columnar.html) that shards
// use. Writers and readers both call these functions: a reader never parses metadata, but compares
// them with what they must be.

const (
	arrowMagic      = "ARROW1"
	headMagicBytes  = 8                          // the magic, padded
	continuation    = 0xFFFFFFFF                 // before each message's length
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

	var w fbWriter
	w.b = append(w.b, 0, 0, 0, 0)
	msg, slots := w.table(5, fbField{3, 8, 0}, fbField{2, 4, 0}, fbField{0, 2, metadataV5}, fbField{1, 1, headerSchema})
	w.point(0, msg)
	w.point(slots[1], l.schemaTable(&w))
	l.Head = append([]byte(arrowMagic), make([]byte, headMagicBytes-len(arrowMagic))...)
	l.Head = append(l.Head, message(w.b, headMagicBytes)...)

	w = fbWriter{b: make([]byte, 4)}
	nodes := 0
	for _, c := range l.Cols {
		nodes++
		l.numBufs += 2
		if c.List {
			nodes++
			l.numBufs += 2
		}
	}
	msg, slots = w.table(5, fbField{3, 8, 0}, fbField{2, 4, 0}, fbField{0, 2, metadataV5}, fbField{1, 1, headerBatch})
	w.point(0, msg)
	l.bodyAt = slots[0] + 8
	batch, inner := w.table(3, fbField{0, 8, 0}, fbField{1, 4, 0}, fbField{2, 4, 0})
	w.point(slots[1], batch)
	l.lengthAt = inner[0] + 8
	v := w.vector(nodes, 8)
	w.point(inner[1], v)
	l.nodesAt = len(w.b) + 8
	w.b = append(w.b, make([]byte, 16*nodes)...)
	v = w.vector(l.numBufs, 8)
	w.point(inner[2], v)
	l.buffers = len(w.b) + 8
	w.b = append(w.b, make([]byte, 16*l.numBufs)...)
	l.template = message(w.b, 0)
	l.MetaLen = int64(len(l.template))
	empty, at := l.footerAndOffsets(nil, [32]byte{})
	l.noBlocks, l.noBlocksAt = len(empty), at
	return l
}

// message frames metadata that begin at offset at of a file, and pads them so that the body is
// aligned.
func message(meta []byte, at int) []byte {
	size := 8 + len(meta)
	size += -(at + size) & (BufferAlign - 1)
	out := make([]byte, 8, size)
	binary.LittleEndian.PutUint32(out, continuation)
	binary.LittleEndian.PutUint32(out[4:], uint32(size-8))
	return append(out, meta...)[:size]
}

// schemaTable writes the Schema table.
func (l *Layout) schemaTable(w *fbWriter) int {
	schema, slots := w.table(4, fbField{1, 4, 0}, fbField{2, 4, 0}, fbField{0, 2, 0})
	fields, at := w.offsets(len(l.Cols))
	w.point(slots[0], fields)
	for i, c := range l.Cols {
		if !c.List {
			w.point(at[i], fieldTable(w, c.Name, c.Value))
			continue
		}
		f, inner := w.table(7, fbField{0, 4, 0}, fbField{3, 4, 0}, fbField{5, 4, 0}, fbField{1, 1, 1},
			fbField{2, 1, 12}) // Type.List
		w.point(at[i], f)
		w.point(inner[0], w.str(c.Name))
		list, _ := w.table(0)
		w.point(inner[1], list)
		children, child := w.offsets(1)
		w.point(inner[2], children)
		w.point(child[0], fieldTable(w, "item", c.Value))
	}
	pairs, _ := w.keyValues([2]string{FormatKey, strconv.Itoa(FormatVersion)})
	w.point(slots[1], pairs)
	return schema
}

// fieldTable writes a nullable Field with an empty list of children, which some readers insist on.
func fieldTable(w *fbWriter, name string, t ValueType) int {
	kind := uint64(2) // Type.Int
	if t == TypeBool {
		kind = 6
	}
	f, slots := w.table(7, fbField{0, 4, 0}, fbField{3, 4, 0}, fbField{5, 4, 0}, fbField{1, 1, 1}, fbField{2, 1, kind})
	w.point(slots[0], w.str(name))
	var typ int
	switch t {
	case TypeBool:
		typ, _ = w.table(0)
	case typeUint16:
		typ, _ = w.table(2, fbField{0, 4, 16}, fbField{1, 1, 0})
	default:
		typ, _ = w.table(2, fbField{0, 4, uint64(8 * t.Bytes(1))}, fbField{1, 1, 1})
	}
	w.point(slots[1], typ)
	children, _ := w.offsets(0)
	w.point(slots[2], children)
	return f
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
	w := fbWriter{b: make([]byte, 4, 1024+int64(len(blocks))*footerBytes)}
	foot, slots := w.table(5, fbField{1, 4, 0}, fbField{2, 4, 0}, fbField{3, 4, 0}, fbField{4, 4, 0},
		fbField{0, 2, metadataV5})
	w.point(0, foot)
	w.point(slots[0], l.schemaTable(&w))
	w.point(slots[1], w.vector(0, 8))
	w.point(slots[2], w.vector(len(blocks), 8))
	at.blocks = len(EndOfStream) + len(w.b)
	pos := int64(len(l.Head))
	for _, b := range blocks {
		w.int64s(pos, l.MetaLen, b.Body) // metaDataLength is an int32 and its padding
		pos += l.MetaLen + b.Body
	}
	rows, crcs := make([]byte, 0, batchRowsDigits*len(blocks)), make([]byte, 0, batchCRCDigits*len(blocks))
	for _, b := range blocks {
		rows, crcs = appendHex(rows, b.Rows, batchRowsDigits), appendHex(crcs, b.Crc, batchCRCDigits)
	}
	v, values := w.keyValues([2]string{contentKey, hex.EncodeToString(content[:])},
		[2]string{headCRCKey, fmt.Sprintf("%08x", crc32.ChecksumIEEE(l.Head))},
		[2]string{batchCRCKey, string(crcs)}, [2]string{batchRowsKey, string(rows)})
	w.point(slots[3], v)
	at.content, at.crcs, at.rows = len(EndOfStream)+values[0], len(EndOfStream)+values[2], len(EndOfStream)+values[3]
	w.align(8)
	out = append([]byte(EndOfStream), w.b...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(w.b)))
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

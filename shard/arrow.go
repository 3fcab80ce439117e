package shard

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
	bufferAlign     = 64                         // of messages in the file and buffers in a body
	blockBytes      = 24                         // struct Block
	footerTailBytes = int64(4 + len(arrowMagic)) // the footer's length, the magic
	endOfStream     = "\xff\xff\xff\xff\x00\x00\x00\x00"
	formatKey       = "dsload.format"
	batchRowsKey    = "dsload.batch_rows"
	batchRowsDigits = 4 // hexadecimal, a batch
	batchCRCKey     = "dsload.batch_crc32"
	batchCRCDigits  = 8
	footerBytes     = blockBytes + batchRowsDigits + batchCRCDigits // a record batch adds to a footer
	headCRCKey      = "dsload.head_crc32"
	contentKey      = "dsload.blake3"
	contentDigits   = 64
)

// block is a record batch of a shard. Its message begins where the previous batch ends.
type block struct {
	body int64  // bytes
	rows uint32 // at most maxBatchRows
	crc  uint32 // CRC-32 of message and body
}

// layout is the part of a shard's metadata that follows from its schema.
type layout struct {
	schema     Schema
	cols       []column
	colIndex   [numColumns]int
	head       []byte // from the file's first byte to the first record batch
	metaLen    int64  // bytes of a record batch's message before its body
	template   []byte // of such a message
	bodyAt     int    // where in it the body's length is
	lengthAt   int    // the row count
	nodesAt    int    // the FieldNodes
	buffers    int    // where in it the Buffers are
	numBufs    int
	noBlocks   int           // bytes from the end of stream on of a shard without record batches
	noBlocksAt footerOffsets // in them
}

func newLayout(s Schema) *layout {
	l := &layout{schema: s, cols: s.columns(), colIndex: s.columnIndexes()}

	var w fbWriter
	w.b = append(w.b, 0, 0, 0, 0)
	msg, slots := w.table(5, fbField{3, 8, 0}, fbField{2, 4, 0}, fbField{0, 2, metadataV5}, fbField{1, 1, headerSchema})
	w.point(0, msg)
	w.point(slots[1], l.schemaTable(&w))
	l.head = append([]byte(arrowMagic), make([]byte, headMagicBytes-len(arrowMagic))...)
	l.head = append(l.head, message(w.b, headMagicBytes)...)

	w = fbWriter{b: make([]byte, 4)}
	nodes := 0
	for _, c := range l.cols {
		nodes++
		l.numBufs += 2
		if c.list {
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
	l.metaLen = int64(len(l.template))
	empty, at := l.footerAndOffsets(nil, [32]byte{})
	l.noBlocks, l.noBlocksAt = len(empty), at
	return l
}

// message frames metadata that begin at offset at of a file, and pads them so that the body is
// aligned.
func message(meta []byte, at int) []byte {
	size := 8 + len(meta)
	size += -(at + size) & (bufferAlign - 1)
	out := make([]byte, 8, size)
	binary.LittleEndian.PutUint32(out, continuation)
	binary.LittleEndian.PutUint32(out[4:], uint32(size-8))
	return append(out, meta...)[:size]
}

// schemaTable writes the Schema table.
func (l *layout) schemaTable(w *fbWriter) int {
	schema, slots := w.table(4, fbField{1, 4, 0}, fbField{2, 4, 0}, fbField{0, 2, 0})
	fields, at := w.offsets(len(l.cols))
	w.point(slots[0], fields)
	for i, c := range l.cols {
		if !c.list {
			w.point(at[i], fieldTable(w, c.name, c.value))
			continue
		}
		f, inner := w.table(7, fbField{0, 4, 0}, fbField{3, 4, 0}, fbField{5, 4, 0}, fbField{1, 1, 1},
			fbField{2, 1, 12}) // Type.List
		w.point(at[i], f)
		w.point(inner[0], w.str(c.name))
		list, _ := w.table(0)
		w.point(inner[1], list)
		children, child := w.offsets(1)
		w.point(inner[2], children)
		w.point(child[0], fieldTable(w, "item", c.value))
	}
	pairs, _ := w.keyValues([2]string{formatKey, strconv.Itoa(FormatVersion)})
	w.point(slots[1], pairs)
	return schema
}

// fieldTable writes a nullable Field with an empty list of children, which some readers insist on.
func fieldTable(w *fbWriter, name string, t valueType) int {
	kind := uint64(2) // Type.Int
	if t == typeBool {
		kind = 6
	}
	f, slots := w.table(7, fbField{0, 4, 0}, fbField{3, 4, 0}, fbField{5, 4, 0}, fbField{1, 1, 1}, fbField{2, 1, kind})
	w.point(slots[0], w.str(name))
	var typ int
	switch t {
	case typeBool:
		typ, _ = w.table(0)
	case typeUint16:
		typ, _ = w.table(2, fbField{0, 4, 16}, fbField{1, 1, 0})
	default:
		typ, _ = w.table(2, fbField{0, 4, uint64(8 * t.bytes(1))}, fbField{1, 1, 1})
	}
	w.point(slots[1], typ)
	children, _ := w.offsets(0)
	w.point(slots[2], children)
	return f
}

// columnPlace locates a column's buffers in a body. Only list columns use offsets.
type columnPlace struct {
	offsetsAt, offsetsLen int64
	valuesAt, valuesLen   int64
}

// place lays out the body of a batch of the given number of rows, and returns its length. values[i]
// is the number of values of the i-th column; for a list, of its items.
func (l *layout) place(dst []columnPlace, rows int64, values []int64) ([]columnPlace, int64) {
	pos := int64(0)
	for i, c := range l.cols {
		var p columnPlace
		if c.list {
			p.offsetsAt, p.offsetsLen = pos, 4*(rows+1)
			pos += align64(p.offsetsLen)
		}
		p.valuesAt, p.valuesLen = pos, c.value.bytes(values[i])
		pos += align64(p.valuesLen)
		dst = append(dst, p)
	}
	return dst, pos
}

func align64(n int64) int64 { return (n + bufferAlign - 1) &^ (bufferAlign - 1) }

// appendBatchMeta appends the message that precedes the body of a batch.
func (l *layout) appendBatchMeta(dst []byte, rows int64, values []int64, places []columnPlace, body int64) []byte {
	start := len(dst)
	dst = append(dst, l.template...)
	m := dst[start:]
	put := func(at int, v int64) { binary.LittleEndian.PutUint64(m[at:], uint64(v)) }
	put(l.bodyAt, body)
	put(l.lengthAt, rows)
	node, buf := l.nodesAt, l.buffers
	for i, c := range l.cols {
		p := places[i]
		if c.list {
			put(node, rows) // its null count stays 0
			node += 16
			put(buf, p.offsetsAt) // validity: no bytes
			put(buf+16, p.offsetsAt)
			put(buf+24, p.offsetsLen)
			buf += 32
		}
		put(node, values[i])
		node += 16
		put(buf, p.valuesAt)
		put(buf+16, p.valuesAt)
		put(buf+24, p.valuesLen)
		buf += 32
	}
	return dst
}

// footer returns everything after the last record batch: end of stream, footer, its length, magic.
// content is the BLAKE3 of everything before.
func (l *layout) footer(blocks []block, content [32]byte) []byte {
	out, _ := l.footerAndOffsets(blocks, content)
	return out
}

// footerOffsets are the offsets of the parts of a footer that differ between shards: the first
// Block, and the digits of the content's checksum, the batches' checksums and their row counts.
type footerOffsets struct{ blocks, content, crcs, rows int }

// footerAndOffsets returns a footer and the offsets of its parts. The parts whose length does not depend
// on the number of blocks come first and those that grow by 4 bytes a block last, so the offsets
// move with that number as readFooter computes.
func (l *layout) footerAndOffsets(blocks []block, content [32]byte) (out []byte, at footerOffsets) {
	w := fbWriter{b: make([]byte, 4, 1024+int64(len(blocks))*footerBytes)}
	foot, slots := w.table(5, fbField{1, 4, 0}, fbField{2, 4, 0}, fbField{3, 4, 0}, fbField{4, 4, 0},
		fbField{0, 2, metadataV5})
	w.point(0, foot)
	w.point(slots[0], l.schemaTable(&w))
	w.point(slots[1], w.vector(0, 8))
	w.point(slots[2], w.vector(len(blocks), 8))
	at.blocks = len(endOfStream) + len(w.b)
	pos := int64(len(l.head))
	for _, b := range blocks {
		w.int64s(pos, l.metaLen, b.body) // metaDataLength is an int32 and its padding
		pos += l.metaLen + b.body
	}
	rows, crcs := make([]byte, 0, batchRowsDigits*len(blocks)), make([]byte, 0, batchCRCDigits*len(blocks))
	for _, b := range blocks {
		rows, crcs = appendHex(rows, b.rows, batchRowsDigits), appendHex(crcs, b.crc, batchCRCDigits)
	}
	v, values := w.keyValues([2]string{contentKey, hex.EncodeToString(content[:])},
		[2]string{headCRCKey, fmt.Sprintf("%08x", crc32.ChecksumIEEE(l.head))},
		[2]string{batchCRCKey, string(crcs)}, [2]string{batchRowsKey, string(rows)})
	w.point(slots[3], v)
	at.content, at.crcs, at.rows = len(endOfStream)+values[0], len(endOfStream)+values[2], len(endOfStream)+values[3]
	w.align(8)
	out = append([]byte(endOfStream), w.b...)
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

// readFooter returns the blocks and the content's checksum from the end of a shard. tail begins
// with the end of the stream, at offset dataEnd. readFooter accepts only what footer makes: it compares
// the two in the end.
func (l *layout) readFooter(tail []byte, dataEnd int64) (blocks []block, content [32]byte, ok bool) {
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
	blocks = make([]block, n)
	end := int64(len(l.head))
	for i := range blocks {
		k := block{body: int64(binary.LittleEndian.Uint64(tail[at.blocks+blockBytes*i+16:])),
			rows: parseHex(tail[at.rows+batchRowsDigits*i:][:batchRowsDigits]),
			crc:  parseHex(tail[at.crcs+batchCRCDigits*i:][:batchCRCDigits])}
		if k.rows < 1 || k.rows > maxBatchRows || k.body < 0 || k.body > dataEnd {
			return nil, content, false
		}
		blocks[i] = k
		end += l.metaLen + k.body
		if k.body%bufferAlign != 0 || end > dataEnd {
			return nil, content, false
		}
	}
	if _, err := hex.Decode(content[:], tail[at.content:at.content+contentDigits]); err != nil {
		return nil, content, false
	}
	if end != dataEnd || string(l.footer(blocks, content)) != string(tail) {
		return nil, content, false
	}
	return blocks, content, true
}

// batchSize returns the number of bytes of b in a shard.
func (l *layout) batchSize(b *batch) int64 {
	n := l.metaLen
	for i := range b.cols {
		n += align64(int64(len(b.cols[i].offsets))) + align64(int64(len(b.cols[i].values)))
	}
	return n
}

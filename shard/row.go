package shard

import (
	"encoding/binary"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
)

// Row is a row in its form on disk. The next read into it reuses its slices. Columns that the
// schema lacks or that were not asked for are empty.
type Row struct {
	Width    int    // bytes of an id: 2 or 4
	InputIDs []byte // little-endian ids
	Labels   []byte // little-endian ids
	LossMask []bool
	Segments []int32
	Document int64
	Part     int32
}

// AppendInputIDs appends the input ids as numbers.
func (row *Row) AppendInputIDs(dst []uint32) []uint32 { return appendIDs(dst, row.InputIDs, row.Width) }

// AppendLabels appends the labels as numbers.
func (row *Row) AppendLabels(dst []uint32) []uint32 { return appendIDs(dst, row.Labels, row.Width) }

func appendIDs(dst []uint32, raw []byte, width int) []uint32 {
	n := len(raw) / 4
	if width == 2 {
		n = len(raw) / 2
	}
	dst = slices.Grow(dst, n)[:len(dst)+n]
	ids := dst[len(dst)-n:]
	if width == 2 {
		for i := range ids {
			ids[i] = uint32(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		return dst
	}
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return dst
}

// Columns is a set of columns to read.
type Columns uint8

// The optional columns; input_ids are always read. AllColumns selects every column of the schema.
const (
	ColumnLabels Columns = 1 << iota
	ColumnLossMask
	ColumnSegments
	ColumnDocument         // document and part
	AllColumns     Columns = 1<<iota - 1
)

// Schema is the columns that rows have; FORMAT.md describes them. input_ids, document and part are
// always present.
type Schema struct {
	VocabSize int  `json:"vocab_size"` // ids are below it; they are uint16 up to 65536, else int32
	Labels    bool `json:"labels"`
	LossMask  bool `json:"loss_mask"`
	Segments  bool `json:"segments"`
}

// IDWidth returns the number of bytes of an id in input_ids and labels: 2 or 4.
func (s Schema) IDWidth() int {
	return shardfile.Shape(s).IDWidth()
}

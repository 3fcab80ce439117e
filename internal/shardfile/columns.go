package shardfile

import (
	"errors"
	"fmt"
)

// Shape is what the bytes of a shard depend on besides its rows: shard.Schema, without the names that its
// members have in a manifest.
type Shape struct {
	VocabSize                  int
	Labels, LossMask, Segments bool
}

// IDWidth returns the number of bytes of an id in input_ids and labels: 2 or 4.
func (s Shape) IDWidth() int {
	if s.VocabSize <= maxUint16Vocab {
		return 2
	}
	return 4
}

// Column is a column of a shard.
type Column struct {
	Name  string
	List  bool
	Value ValueType
}

type ValueType uint8

const (
	typeUint16 ValueType = iota
	TypeInt32
	typeInt64
	TypeBool
)

// Bytes returns the size of n values in a buffer, without padding.
func (t ValueType) Bytes(n int64) int64 {
	switch t {
	case typeUint16:
		return 2 * n
	case TypeInt32:
		return 4 * n
	case typeInt64:
		return 8 * n
	default:
		return (n + 7) / 8
	}
}

// All columns. columns() omits the optional ones that a schema lacks.
const (
	ColInputIDs = iota
	ColLabels
	ColLossMask
	ColSegments
	ColDocument
	ColPart
	NumColumns
)

// columns returns the columns of a schema, in their order in a shard.
func (s Shape) columns() []Column {
	ids := TypeInt32
	if s.IDWidth() == 2 {
		ids = typeUint16
	}
	all := [NumColumns]Column{
		ColInputIDs: {"input_ids", true, ids},
		ColLabels:   {"labels", true, ids},
		ColLossMask: {"loss_mask", true, TypeBool},
		ColSegments: {"segments", true, TypeInt32},
		ColDocument: {"document", false, typeInt64},
		ColPart:     {"part", false, TypeInt32},
	}
	indexes := s.columnIndexes()
	var cols []Column
	for i, c := range all {
		if indexes[i] >= 0 {
			cols = append(cols, c)
		}
	}
	return cols
}

// columnIndexes returns the index of each possible column in columns(), or -1.
func (s Shape) columnIndexes() [NumColumns]int {
	has := [NumColumns]bool{true, s.Labels, s.LossMask, s.Segments, true, true}
	var indexes [NumColumns]int
	n := 0
	for i, h := range has {
		if indexes[i] = -1; h {
			indexes[i] = n
			n++
		}
	}
	return indexes
}

var errSegments = errors.New("segments do not add up to the row's length")

func CheckSegments(segments []int32, length int) error {
	sum := 0
	for _, n := range segments {
		if n <= 0 || int(n) > length-sum {
			return errSegments
		}
		sum += int(n)
	}
	if sum != length {
		return errSegments
	}
	return nil
}

// NumLists returns the number of list columns, which come first.
func (l *Layout) NumLists() (n int) {
	for _, c := range l.Cols {
		if c.List {
			n++
		}
	}
	return n
}

// Limits of the format, as in FORMAT.md.
const (
	MaxBatchRows   = 1024      // rows of a record batch
	MaxBatchBytes  = 256 << 10 // bytes of values of a record batch of more than one row
	MaxRowTokens   = 1 << 28   // tokens of the longest row, whatever BuilderOptions say
	MaxVocabSize   = 1 << 31   // ids are int32 on disk
	MaxShardBytes  = 64 << 30
	MinShardBytes  = 4 << 10
	maxUint16Vocab = 1 << 16 // up to here ids are uint16
)

func (s Shape) Validate() error {
	if s.VocabSize < 1 || s.VocabSize > MaxVocabSize {
		return fmt.Errorf("vocabulary size %d: %w", s.VocabSize, ErrRange)
	}
	return nil
}

package shard

import (
	"errors"
	"fmt"
)

// Limits of the format, as in FORMAT.md.
const (
	maxBatchRows   = 1024      // rows of a record batch
	maxBatchBytes  = 256 << 10 // bytes of values of a record batch of more than one row
	maxRowTokens   = 1 << 28   // tokens of the longest row, whatever BuilderOptions say
	maxVocabSize   = 1 << 31   // ids are int32 on disk
	maxShardBytes  = 64 << 30
	minShardBytes  = 4 << 10
	maxUint16Vocab = 1 << 16 // up to here ids are uint16
)

// Example is a row. The Builder copies what it appends.
type Example struct {
	InputIDs []uint32 // below Schema.VocabSize
	Labels   []uint32 // target ids, of any length; only if Schema.Labels
	LossMask []bool   // for each input id, whether the loss counts it; only if Schema.LossMask
	// Segments are the positive lengths of the documents in a packed row, which add up to its length;
	// only if Schema.Segments.
	Segments []int32
	Document int64 // ordinal of the document in the corpus
	Part     int32 // which chunk of the document
}

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
	if s.VocabSize <= maxUint16Vocab {
		return 2
	}
	return 4
}

func (s Schema) validate() error {
	if s.VocabSize < 1 || s.VocabSize > maxVocabSize {
		return fmt.Errorf("vocabulary size %d: %w", s.VocabSize, ErrRange)
	}
	return nil
}

// check returns an error if e does not fit the schema. Ids are checked later, where they are
// copied.
func (s Schema) check(e *Example) error {
	switch {
	case len(e.InputIDs) == 0:
		return fmt.Errorf("%w: no input_ids", ErrSchema)
	case s.Labels != (e.Labels != nil):
		return fmt.Errorf("%w: labels", ErrSchema)
	case s.LossMask != (e.LossMask != nil), s.LossMask && len(e.LossMask) != len(e.InputIDs):
		return fmt.Errorf("%w: loss_mask has %d values for %d input_ids", ErrSchema, len(e.LossMask), len(e.InputIDs))
	case s.Segments != (e.Segments != nil):
		return fmt.Errorf("%w: segments", ErrSchema)
	case e.Document < 0 || e.Part < 0:
		return fmt.Errorf("%w: document %d, part %d", ErrRange, e.Document, e.Part)
	}
	if s.Segments {
		if err := checkSegments(e.Segments, len(e.InputIDs)); err != nil {
			return err
		}
	}
	return nil
}

var errSegments = errors.New("segments do not add up to the row's length")

func checkSegments(segments []int32, length int) error {
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

// column is a column of a shard.
type column struct {
	name  string
	list  bool
	value valueType
}

type valueType uint8

const (
	typeUint16 valueType = iota
	typeInt32
	typeInt64
	typeBool
)

// bytes returns the size of n values in a buffer, without padding.
func (t valueType) bytes(n int64) int64 {
	switch t {
	case typeUint16:
		return 2 * n
	case typeInt32:
		return 4 * n
	case typeInt64:
		return 8 * n
	default:
		return (n + 7) / 8
	}
}

// All columns. columns() omits the optional ones that a schema lacks.
const (
	colInputIDs = iota
	colLabels
	colLossMask
	colSegments
	colDocument
	colPart
	numColumns
)

// columns returns the columns of a schema, in their order in a shard.
func (s Schema) columns() []column {
	ids := typeInt32
	if s.IDWidth() == 2 {
		ids = typeUint16
	}
	all := [numColumns]column{
		colInputIDs: {"input_ids", true, ids},
		colLabels:   {"labels", true, ids},
		colLossMask: {"loss_mask", true, typeBool},
		colSegments: {"segments", true, typeInt32},
		colDocument: {"document", false, typeInt64},
		colPart:     {"part", false, typeInt32},
	}
	indexes := s.columnIndexes()
	var cols []column
	for i, c := range all {
		if indexes[i] >= 0 {
			cols = append(cols, c)
		}
	}
	return cols
}

// columnIndexes returns the index of each possible column in columns(), or -1.
func (s Schema) columnIndexes() [numColumns]int {
	has := [numColumns]bool{true, s.Labels, s.LossMask, s.Segments, true, true}
	var indexes [numColumns]int
	n := 0
	for i, h := range has {
		if indexes[i] = -1; h {
			indexes[i] = n
			n++
		}
	}
	return indexes
}

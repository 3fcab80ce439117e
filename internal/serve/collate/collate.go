// Package collate makes a padded batch of rows: ids, attention mask, labels, and for packed rows
// position ids and segments.
//
// Data flow: package serve reads the values of many rows into the batch at once (Read), divides
// them into rows (Take) and seals the batch (Seal). Then the feed asks for any run of the elements
// of any column (Fill), as bytes for the wire. A batch keeps its rows as wide as the shard has
// them, two or four bytes a token; padding and widening happen only in the writer's buffer. So a
// batch that waits for a slow client takes about a tenth of its size on the wire.
//
// Ownership: a Batch owns its buffers and lends them to Read only. It is reused by Reset and
// belongs to one goroutine at a time.
//
// Invariants:
//
//	I1  every row of a column has the column's Length; the values reshape to (Rows, Length);
//	I2  Fill of the parts of a column yields the same bytes as Fill of the whole;
//	I3  in steady state nothing is allocated;
//	I4  each kernel in assembly has a twin in Go with equal results; the build tag purego selects the twins.
//
// The ids of a batch are not compared with the vocabulary here: shard.Split.AppendIDs, through
// which Read gets all of them, refuses an id outside it.
package collate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Labels is what the labels column holds.
type Labels string

const (
	// Causal labels are the ids, Ignored on padding and where the loss mask is false.
	Causal Labels = "causal"
	// Seq2Seq labels are the row's own labels, padded with Ignored to the longest of the batch.
	Seq2Seq Labels = "seq2seq"
	// NoLabels leaves the column out.
	NoLabels Labels = "none"
	// Auto, in a request, is Seq2Seq where the rows have labels, else Causal. Options have one of these.
	Auto Labels = "auto"
)

// AllLabels are all values of Labels that a request may have, the default first.
var AllLabels = []Labels{Auto, Causal, Seq2Seq, NoLabels}

// Ignored is the label that torch's cross entropy skips.
const Ignored = -100

// Options configures a batch. The zero value pads on the right with id 0 to the longest row, with
// int64 elements and causal labels.
type Options struct {
	PadID       int32  // id of padding
	Left        bool   // padding comes before the tokens
	Multiple    int    // lengths are rounded up to a multiple of it; default 1
	FixedLength int    // if above 0, every row is padded to at least this length
	Labels      Labels // what LabelIDs holds; default Causal
	Narrow      bool   // elements of four bytes instead of eight
	TokenBytes  int    // width of an id in Buffers: 2 or 4; default 4
	Packed      bool   // rows come with segments; adds position ids and segments
	LossMask    bool   // rows may have a loss mask; only Bytes and LabelsAreIDs use it
	// MaskBorders ignores the causal label of the first token of each segment.
	MaskBorders bool
	Counters    int // how many Count adds to
}

// Row identifies a row.
type Row struct {
	Source   int32 // index of its dataset in a mix
	Origin   int32 // index of its source among those of all datasets
	Example  int64 // number in its split
	Position int64 // in the order; -1 marks a row that must not count: its labels are Ignored
}

// Buffers are columns of concatenated rows, little-endian as in the shard.
type Buffers struct {
	IDs, Labels []byte  // TokenBytes each; labels only for Seq2Seq
	LossMask    []bool  // one for each id of a row that has a mask; only for Causal
	Segments    []int32 // Packed: lengths of a row's documents, which sum to the number of its ids
}

// Counts holds the number of values of a row.
type Counts struct {
	IDs, Labels, Segments int
	LossMask              bool // whether the row has a loss mask; without one every token counts
}

// Column is one of the padded columns.
type Column uint8

// The columns, in the order in which they are sent.
const (
	InputIDs Column = iota
	AttentionMask
	LabelIDs
	PositionIDs
	SegmentIDs
)

// ErrSegments means that a packed row's segments do not add up to its length.
var ErrSegments = errors.New("segments do not sum to the row's length")

// ErrTooLarge means that a batch has more elements than Arrow's list offsets can count.
var ErrTooLarge = errors.New("batch has more than 2^31-1 elements: ask for fewer rows")

// Batch is the rows of one batch.
type Batch struct {
	opts   Options
	width  int // bytes an element on the wire
	length int // elements a row
	labels int // elements a row of LabelIDs

	rows      []rowMeta
	have      Buffers // the values of all rows, then those that Read added and Take has not taken yet
	taken     extent  // the values that belong to rows
	tokens    int64
	longest   int
	longLabel int
	counted   []Counted

	// Next is the position after the batch's step.
	Next int64
}

// extent counts values.
type extent struct{ ids, labels, mask, segments int }

type rowMeta struct {
	example, position  int64
	source, origin     int32
	length, labels     int32 // tokens before padding
	id, label, segment int32 // indexes of the row's first value in each column
	segments           int32
	mask               int32 // index of the first value of its loss mask, -1 for none
}

// rowOverhead is the memory of a row besides its tokens, in bytes.
const rowOverhead = 56

// New returns an empty batch.
func New(o Options) *Batch {
	b := &Batch{}
	b.configure(o)
	return b
}

// configure empties the batch and sets its options.
func (b *Batch) configure(o Options) {
	o.Multiple, o.TokenBytes, o.Labels = max(o.Multiple, 1), cmp.Or(o.TokenBytes, 4), cmp.Or(o.Labels, Causal)
	b.opts, b.width = o, 8
	if o.Narrow {
		b.width = 4
	}
	b.counted = make([]Counted, o.Counters)
	b.Reset()
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.rows = b.rows[:0]
	clear(b.counted)
	b.have = Buffers{b.have.IDs[:0], b.have.Labels[:0], b.have.LossMask[:0], b.have.Segments[:0]}
	b.taken, b.tokens, b.longest, b.longLabel, b.length, b.labels, b.Next = extent{}, 0, 0, 0, 0, 0, 0
}

// Read calls read to append the values of the next rows to the batch's buffers. read must not keep
// the slices or change what they already hold.
func (b *Batch) Read(read func(dst *Buffers) error) error {
	if err := read(&b.have); err != nil {
		return err
	}
	return b.have.check()
}

// check returns ErrTooLarge if the buffers are longer than a rowMeta can count.
func (v *Buffers) check() error {
	if max(len(v.IDs), len(v.Labels), len(v.LossMask), len(v.Segments)) > math.MaxInt32 {
		return ErrTooLarge
	}
	return nil
}

// extent counts the values in the buffers.
func (b *Batch) extent() extent {
	return extent{len(b.have.IDs) / b.opts.TokenBytes, len(b.have.Labels) / b.opts.TokenBytes, len(b.have.LossMask),
		len(b.have.Segments)}
}

// Take makes a row of the next values that Read added. It returns ErrSegments if the row's segments
// do not sum to its length.
func (b *Batch) Take(n Counts, r Row) error {
	m := rowMeta{
		example: r.Example, position: r.Position, source: r.Source, origin: r.Origin, length: int32(n.IDs), labels: int32(n.Labels),
		segments: int32(n.Segments), mask: -1,
		id: int32(b.taken.ids), label: int32(b.taken.labels), segment: int32(b.taken.segments),
	}
	next := extent{b.taken.ids + n.IDs, b.taken.labels + n.Labels, b.taken.mask, b.taken.segments + n.Segments}
	if n.LossMask {
		m.mask = int32(b.taken.mask)
		next.mask += n.IDs
	}
	if have := b.extent(); next.ids > have.ids || next.labels > have.labels || next.mask > have.mask ||
		next.segments > have.segments {
		panic("collate: more values taken than were read")
	}
	if b.opts.Packed {
		if err := checkSegments(b.have.Segments[b.taken.segments:next.segments], n.IDs); err != nil {
			return err
		}
	}
	b.taken = next
	b.longLabel = max(b.longLabel, n.Labels)
	b.longest = max(b.longest, n.IDs)
	b.tokens += int64(n.IDs)
	if n := len(b.rows); n == cap(b.rows) { // append would double it, which Bytes does not count
		rows := make([]rowMeta, n, n+n/4+8)
		copy(rows, b.rows)
		b.rows = rows
	}
	b.rows = append(b.rows, m)
	return nil
}

// Unclaimed returns the number of segments that Read added and Take has not yet taken.
func (b *Batch) Unclaimed() int { return len(b.have.Segments) - b.taken.segments }

func checkSegments(segments []int32, length int) error {
	sum := int64(0)
	for _, s := range segments {
		if s <= 0 {
			return ErrSegments
		}
		sum += int64(s)
	}
	if sum != int64(length) {
		return fmt.Errorf("%w: %d of %d", ErrSegments, sum, length)
	}
	return nil
}

// Seal completes the batch: it sets the lengths of the columns. It returns ErrTooLarge for a batch
// that Arrow cannot describe.
func (b *Batch) Seal() error {
	b.length = b.opts.padded(b.longest)
	b.labels = b.length
	if b.opts.Labels == Seq2Seq {
		b.labels = b.opts.padded(b.longLabel)
	}
	if int64(len(b.rows))*int64(max(b.length, b.labels)) > math.MaxInt32 {
		return ErrTooLarge
	}
	return nil
}

// padded returns the length of a column whose longest row has n elements.
func (o Options) padded(n int) int {
	if o.FixedLength > 0 {
		return max(n, o.FixedLength)
	}
	return (n + o.Multiple - 1) / o.Multiple * o.Multiple
}

// Has reports whether the batch has column c.
func (b *Batch) Has(c Column) bool {
	switch c {
	case LabelIDs:
		return b.opts.Labels != NoLabels
	case PositionIDs, SegmentIDs:
		return b.opts.Packed
	}
	return c <= AttentionMask
}

// Rows returns the number of rows.
func (b *Batch) Rows() int { return len(b.rows) }

// Tokens returns the number of ids before padding.
func (b *Batch) Tokens() int64 { return b.tokens }

// Width returns the number of bytes of an element of a column.
func (b *Batch) Width() int { return b.width }

// TokenBytes returns the number of bytes of an id as it was read.
func (b *Batch) TokenBytes() int { return b.opts.TokenBytes }

// LabelsAreIDs reports whether the labels of every row that counts are its ids, so that only padding
// is Ignored.
func (o Options) LabelsAreIDs() bool {
	return cmp.Or(o.Labels, Causal) == Causal && !o.LossMask && !(o.Packed && o.MaskBorders)
}

// Length returns the number of elements in each row of a column.
func (b *Batch) Length(c Column) int {
	if c == LabelIDs {
		return b.labels
	}
	return b.length
}

// RowLength returns the number of ids of row i before padding.
func (b *Batch) RowLength(i int) int32 { return b.rows[i].length }

// Example returns the number of row i in its split.
func (b *Batch) Example(i int) int64 { return b.rows[i].example }

// Position returns the position of row i in the order.
func (b *Batch) Position(i int) int64 { return b.rows[i].position }

// OriginOf returns the index of row i's source.
func (b *Batch) OriginOf(i int) int32 { return b.rows[i].origin }

// Count adds rows and tokens to one of the batch's counters.
func (b *Batch) Count(counter int, rows, tokens int64) {
	c := &b.counted[counter]
	c.Rows, c.Tokens = c.Rows+rows, c.Tokens+tokens
}

// Counted returns the counters. They belong to the batch.
func (b *Batch) Counted() []Counted { return b.counted }

// Counted is what a batch has of the rows that are counted together.
type Counted struct{ Rows, Tokens int64 }

// SourceOf returns the index of row i's dataset in a mix.
func (b *Batch) SourceOf(i int) int32 { return b.rows[i].source }

// Bytes bounds the memory of a batch of the given number of rows with at most the given number of
// tokens in all.
func (o Options) Bytes(rows int, tokens int64) int64 {
	perToken := int64(max(o.TokenBytes, 2))
	switch cmp.Or(o.Labels, Causal) {
	case Seq2Seq:
		perToken *= 2
	case Causal:
		if o.LossMask {
			perToken++
		}
	}
	if o.Packed {
		perToken += 4 // a segment a token at worst
	}
	return int64(rows)*rowOverhead + tokens*perToken + 16*int64(o.Counters)
}

package view

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/shard"
)

// A List is rows to look at, in an order.
type List struct {
	Len     int64
	Pattern *regexp.Regexp              // what rows must match, nil for all
	read    func(i int64) (*Row, error) // row i, not yet described
}

// All returns the rows of a split.
func (s *Split) All() *List { return &List{Len: s.Rows.NumRows(), read: s.Read} }

// Documents returns the rows of the documents from first up to end, none if they have none in the split.
func (s *Split) Documents(first, end int64) (*List, error) {
	if s.Rows.Schema().Segments {
		return nil, fault.Errorf("the rows are packed, and each names only the first of its documents; search their text " +
			"with {grep}, or look into a dataset built without {pack}")
	}
	from, to, err := serve.RowsOf(s.Rows, first, end)
	return &List{Len: to - from, read: func(i int64) (*Row, error) { return s.Read(from + i) }}, err
}

// Source returns the rows of the first source that a build named so, or whose path ends so, and the names of some that
// there are.
func (s *Split) Source(name string) (_ *List, names []string, err error) {
	const maxNames = 8
	first, end, is := int64(0), int64(0), ""
	err = s.origins.Runs(func(run origins.Run) error {
		if !slices.Contains(names, run.Name) && len(names) < maxNames {
			names = append(names, run.Name)
		}
		if is == "" && (run.Name == name || strings.HasSuffix(run.Name, "/"+name)) {
			first, is = run.Ordinal, run.Name
		}
		if run.Name == is {
			end = run.Ordinal + run.N
		} else if is != "" {
			return io.EOF
		}
		return nil
	})
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	l, err := s.Documents(first, end)
	return l, names, err
}

// Longest returns the first of the longest rows, or of the shortest.
func (s *Split) Longest(shortest bool) (int64, error) {
	want := s.Rows.Info().MaxLength
	if shortest {
		want = s.Rows.Info().MinLength
	}
	var rows [1 << 10]int64
	var lengths [len(rows)]int32
	for first := int64(0); first < s.Rows.NumRows(); first += int64(len(rows)) {
		n := min(int64(len(rows)), s.Rows.NumRows()-first)
		for i := range n {
			rows[i] = first + i
		}
		if err := s.Rows.Lengths(lengths[:n], rows[:n]); err != nil {
			return 0, err
		}
		if i := slices.Index(lengths[:n], int32(want)); i >= 0 {
			return first + int64(i), nil
		}
	}
	return 0, fault.Kindf(fault.Corrupt, "no row has %d tokens, as the manifest says of one", want)
}

// Next returns the next row of the list that matches, described, and its number: the first from i on, or before it with a
// step of -1. The error is io.EOF if there is none. It ends where stop returns an error.
func (l *List) Next(i, step int64, tokens bool, stop func() error) (*Row, int64, error) {
	for ; i >= 0 && i < l.Len; i += step {
		if err := stop(); err != nil {
			return nil, i, err
		}
		row, err := l.read(i)
		if err != nil {
			return nil, i, err
		}
		if l.Pattern == nil || row.match(l.Pattern) {
			return row, i, row.Describe(tokens)
		}
	}
	return nil, i, io.EOF
}

// Given is a row as a batch has it, without padding.
type Given struct {
	Example  int64    `json:"example"` // its place in the split, negative if unknown
	InputIDs []uint32 `json:"input_ids"`
	Labels   []uint32 `json:"labels"`
	LossMask []bool   `json:"loss_mask"`
	Segments []int32  `json:"segments"`
}

// Given returns the rows of a batch.
func (s *Split) Given(rows []Given) *List {
	return &List{Len: int64(len(rows)), read: func(i int64) (*Row, error) {
		g := &rows[i]
		tokens := int32(0)
		for _, n := range g.Segments {
			tokens += n
		}
		if g.LossMask != nil && len(g.LossMask) != len(g.InputIDs) || g.Segments != nil && int(tokens) != len(g.InputIDs) {
			return nil, fault.Kindf(fault.Usage, "row %d: loss_mask and segments are not those of its %d ids", i, len(g.InputIDs))
		}
		for _, id := range slices.Concat(g.InputIDs, g.Labels) {
			if size := s.Rows.Schema().VocabSize; int64(id) >= int64(size) {
				return nil, fault.Kindf(fault.Usage, "row %d: the dataset's tokenizer has the ids below %d, and the row has %d: "+
					"give the dataset that the batch was read from", i, size, id)
			}
		}
		r := &Row{of: s, Split: s.Rows.Info().Name, Origin: Origin{Example: g.Example, Document: -1}, InputIDs: g.InputIDs,
			Labels: g.Labels, LossMask: g.LossMask, Segments: g.Segments, Documents: len(g.Segments)}
		r.decode()
		if g.Example < 0 || g.Example >= s.Rows.NumRows() {
			return r, nil
		}
		err := s.Rows.ReadColumns(g.Example, shard.ColumnDocument, &s.row)
		r.Document, r.Part = s.row.Document, s.row.Part
		return r, err
	}}
}

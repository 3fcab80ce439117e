// Package view finds rows of a dataset and says all that the dataset knows about them.
//
//	split -> List (all rows, or those of a document, a source, a step of a run, a search) -> Row -> text, JSON, page
//
// A row costs what reading it costs, wherever it lies: nothing is scanned but by a search, which holds one row at a time,
// and to find the shortest or longest row, which reads lengths until one is the manifest's. A Split and its Lists belong
// to one goroutine.
package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/internal/visible"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// A Split is the rows of a split with their texts and origins.
type Split struct {
	Rows    *shard.Split
	tok     *tokenize.Tokenizer // nil where there is none
	origins *origins.Split      // nil where none are recorded
	row     shard.Row
}

// An Origin is an example and where it came from.
type Origin struct {
	Example  int64   `json:"example"`  // its place in the split
	Document int64   `json:"document"` // for a packed row, the first in the corpus
	Part     int32   `json:"part"`
	Source   *string `json:"source"` // null if the dataset does not say
	Record   *int64  `json:"record"`
}

// A Row is a row and what its dataset knows about it.
type Row struct {
	Row *int64 `json:"row,omitempty"` // its place in the order of a run, which has Epoch, Step and Rank too
	Origin
	Split     string `json:"split"`
	Epoch     *int64 `json:"epoch,omitempty"`
	Step      *int64 `json:"step,omitempty"`
	Rank      *int   `json:"rank,omitempty"`
	Dataset   string `json:"dataset,omitempty"`   // if there are several
	Documents int    `json:"documents,omitempty"` // pieces of documents in a packed row
	Text      string `json:"text"`                // special tokens included
	Target    string `json:"target,omitempty"`    // for examples with labels
	// Pieces are the parts of a row that is packed while it is served. The fields above are those
	// of the first.
	Pieces []Piece `json:"pieces,omitempty"`

	Tokens     int      `json:"tokens"`      // the row's, or those of prompt and target
	LossTokens int      `json:"loss_tokens"` // tokens that carry loss
	InputIDs   []uint32 `json:"input_ids"`
	Labels     []uint32 `json:"labels,omitempty"`    // ids of the target
	LossMask   []bool   `json:"loss_mask,omitempty"` // absent where every token of the row or of its target carries loss
	Segments   []int32  `json:"segments,omitempty"`  // lengths of the documents of a packed row
	// Marks are the text, cut where its marks change.
	Marks       []marked.Piece `json:"marks"`
	TargetMarks []marked.Piece `json:"target_marks,omitempty"`

	of                     *Split
	matches, targetMatches [][]int // in bytes
}

// Read reads row i of the split. Describe adds the rest.
func (s *Split) Read(i int64) (*Row, error) {
	if err := s.Rows.ReadRow(i, &s.row); err != nil {
		return nil, err
	}
	r := &Row{of: s, Split: s.Rows.Info().Name, Origin: Origin{Example: i, Document: s.row.Document, Part: s.row.Part},
		InputIDs: s.row.AppendInputIDs(nil), Segments: slices.Clone(s.row.Segments), Documents: len(s.row.Segments)}
	if s.Rows.Schema().LossMask {
		r.LossMask = slices.Clone(s.row.LossMask)
	}
	if s.Rows.Schema().Labels {
		r.Labels = s.row.AppendLabels([]uint32{})
	}
	r.decode()
	return r, nil
}

func (r *Row) decode() { r.Text, r.Target = r.of.text(r.InputIDs), r.of.text(r.Labels) }

func (s *Split) text(ids []uint32) string {
	switch {
	case len(ids) == 0:
		return ""
	case s.tok == nil:
		return fmt.Sprint(ids)
	}
	return s.tok.Decode(ids)
}

// locate sets where an example came from, if its dataset says so.
func (s *Split) locate(o *Origin) error {
	found, ok, err := s.origins.Find(o.Document)
	if ok {
		o.Source, o.Record = &found.Source, &found.Record
	}
	return err
}

// Describe adds where a row came from, and its marks, a piece for each token if tokens is set.
func (r *Row) Describe(tokens bool) error {
	if err := r.of.locate(&r.Origin); err != nil {
		return err
	}
	loss := r.LossMask
	if r.Labels != nil {
		loss = make([]bool, len(r.InputIDs))
	}
	r.Tokens, r.LossTokens = len(r.InputIDs)+len(r.Labels), 0
	r.Marks = marked.Highlight(marked.Cut(r.of.tok, r.InputIDs, loss, r.Segments, tokens), r.matches)
	r.TargetMarks = marked.Highlight(marked.Cut(r.of.tok, r.Labels, nil, nil, tokens), r.targetMatches)
	for _, p := range slices.Concat(r.Marks, r.TargetMarks) {
		if p.Loss {
			r.LossTokens += p.Tokens
		}
	}
	return nil
}

// Texts returns the marks of a row, and those of its target if it has one.
func (r *Row) Texts() [][]marked.Piece {
	if r.Labels == nil {
		return [][]marked.Piece{r.Marks}
	}
	return [][]marked.Piece{r.Marks, r.TargetMarks}
}

// String names the example's document, and where it came from.
func (o *Origin) String() string {
	text := fmt.Sprintf("document %d, part %d", o.Document, o.Part)
	if o.Source != nil {
		text += fmt.Sprintf(", record %d of %s", *o.Record, *o.Source)
	}
	return text
}

// Head says which row it is, where it came from, and how much of it carries loss, with how that is shown, if it is.
func (r *Row) Head(legend string) string {
	var b strings.Builder
	if r.Row != nil {
		fmt.Fprintf(&b, "row %d (epoch %d", *r.Row, *r.Epoch)
		if r.Step != nil {
			fmt.Fprintf(&b, ", step %d, rank %d", *r.Step, *r.Rank)
		}
		b.WriteString("): ")
		if r.Dataset != "" {
			fmt.Fprintf(&b, "dataset %s, ", r.Dataset)
		}
	}
	switch {
	case r.Pieces != nil:
		b.WriteString(units.Plural(len(r.Pieces), "piece"))
	case r.Row != nil:
		fmt.Fprintf(&b, "example %d, %v", r.Example, &r.Origin)
	case r.Document >= 0:
		fmt.Fprintf(&b, "row %d of %s: %v", r.Example, r.Split, &r.Origin)
	default:
		b.WriteString("a row")
	}
	if more := r.Documents - 1; more > 0 && r.Pieces == nil {
		fmt.Fprintf(&b, " and %d more packed with it", more)
	}
	b.WriteString("; " + units.Plural(r.Tokens, "token"))
	switch {
	case r.LossTokens == r.Tokens:
		b.WriteString(", all with loss")
	case r.Labels != nil:
		fmt.Fprintf(&b, ", loss on the %s of the target", units.Count(len(r.Labels)))
	default:
		fmt.Fprintf(&b, ", loss on %s, %.1f%%", units.Count(r.LossTokens), 100*float64(r.LossTokens)/float64(r.Tokens))
	}
	if legend != "" && r.LossTokens > 0 && r.LossTokens < r.Tokens {
		b.WriteString(" (loss " + legend + ")")
	}
	if n := len(r.matches); n > 0 {
		fmt.Fprintf(&b, "; %s, at character %d", units.Plural(n, "place"), utf8.RuneCountInString(r.Text[:r.matches[0][0]]))
	}
	return b.String()
}

// Lines returns the row as a screen shows it, without its head.
func (r *Row) Lines(s marked.Screen) (lines []string) {
	for i := range r.Pieces {
		p := &r.Pieces[i]
		lines = append(lines, visible.Text(fmt.Sprintf("  %d: example %d, %v, tokens %d to %d", i+1, p.Example, &p.Origin, p.From,
			p.From+p.Tokens-1)))
	}
	return append(lines, s.Lines(r.Texts()...)...)
}

// found returns the line of a screen at which the first match is, 0 if there is none.
func (r *Row) found(s marked.Screen) int {
	before := *r
	for i := range r.Marks {
		if r.Marks[i].Match {
			before.Marks, before.Labels = r.Marks[:i+1], nil
			return len(before.Lines(s)) - 1
		}
	}
	return 0
}

func (r *Row) match(pattern *regexp.Regexp) bool {
	r.matches = pattern.FindAllStringIndex(r.Text, -1)
	r.targetMatches = pattern.FindAllStringIndex(r.Target, -1)
	return len(r.matches)+len(r.targetMatches) > 0
}

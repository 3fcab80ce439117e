package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
)

// tracedLine is what is printed for a row.
type tracedLine struct {
	Row int64 `json:"row"` // its place in the order
	tracedExample
	Epoch   int64  `json:"epoch"`
	Step    *int64 `json:"step,omitempty"`
	Rank    *int   `json:"rank,omitempty"`
	Dataset string `json:"dataset,omitempty"`   // if there are several
	Packed  int    `json:"documents,omitempty"` // pieces of documents in a packed row
	Text    string `json:"text"`
	Target  string `json:"target,omitempty"` // for examples with labels
	// Pieces are the parts of a row that is packed while it is served. The fields above are those
	// of the first.
	Pieces []tracedPiece `json:"pieces,omitempty"`
}

// tracedPiece is what is printed for a document, or a part of one, in a row that is packed while it
// is served.
type tracedPiece struct {
	tracedExample
	Dataset string `json:"dataset,omitempty"`
	From    int64  `json:"from"`   // the piece's first token in the example
	Tokens  int64  `json:"tokens"` // the number of tokens in the piece
	Text    string `json:"text"`
	whole   bool
}

// A tracedExample is an example of a split and where it came from.
type tracedExample struct {
	Example  int64   `json:"example"`  // its place in the split
	Document int64   `json:"document"` // for a packed row, the first in the corpus
	Part     int32   `json:"part"`
	Source   *string `json:"source"` // null if the dataset does not say
	Record   *int64  `json:"record"`
}

// whichPrinter prints rows with what their datasets know about them.
type whichPrinter struct {
	cmd    *cobra.Command
	at     *datasetFS
	trace  *serve.Trace
	split  string
	asJSON bool
	splits []*tracedSplit // nil until needed
}

// A tracedSplit is the split of one of the datasets.
type tracedSplit struct {
	name    string
	decode  func([]uint32) string
	origins *origins.Split
	row     shard.Row
}

// openSplit returns the split of the i-th dataset, and opens it if need be.
func (w *whichPrinter) openSplit(i int) (*tracedSplit, error) {
	if w.splits[i] != nil {
		return w.splits[i], nil
	}
	name, dir, d := w.trace.Dataset(i)
	split := &tracedSplit{name: name, decode: func(ids []uint32) string { return fmt.Sprint(ids) }}
	w.splits[i] = split
	if tok, err := tokenizers.OfDataset(w.at, dir, d.Manifest()); err != nil {
		warn(w.cmd.ErrOrStderr(), "rows are shown as ids: "+err.Error())
	} else {
		split.decode = tok.Decode
	}
	var err error
	split.origins, err = origins.OpenSplit(w.at, dir, d.Manifest(), w.split)
	if errors.Is(err, origins.ErrNone) {
		warn(w.cmd.ErrOrStderr(), fmt.Sprintf("%s: its build did not record where documents came from; "+
			"sources and records are left out; build it again to have them", dir))
		err = nil
	}
	return split, err
}

func (w *whichPrinter) close() (err error) {
	for _, p := range w.splits {
		if p != nil {
			err = errors.Join(err, p.origins.Close())
		}
	}
	return err
}

func (w *whichPrinter) line(r serve.TracedRow) (l tracedLine, err error) {
	pieces, err := w.trace.Pieces(r)
	if err != nil {
		return l, err
	}
	if pieces != nil {
		return w.packedLine(r, pieces)
	}
	p, x, err := w.example(r.Member, r.Example)
	if err != nil {
		return l, err
	}
	l = tracedLine{Row: r.Position, tracedExample: x, Dataset: w.nameOf(p), Epoch: r.Position / w.trace.Rows(),
		Text: p.decode(p.row.AppendInputIDs(nil))}
	if len(p.row.Labels) > 0 {
		l.Target = p.decode(p.row.AppendLabels(nil))
	}
	l.Packed = len(p.row.Segments)
	return l, nil
}

// nameOf returns the name of a split's dataset if there are several.
func (w *whichPrinter) nameOf(p *tracedSplit) string {
	if w.trace.Members() > 1 {
		return p.name
	}
	return ""
}

// example reads an example of the i-th dataset into its split's row.
func (w *whichPrinter) example(i int, n int64) (p *tracedSplit, x tracedExample, err error) {
	if p, err = w.openSplit(i); err != nil {
		return p, x, err
	}
	if err := w.trace.Split(i).ReadRow(n, &p.row); err != nil {
		return p, x, err
	}
	x = tracedExample{Example: n, Document: p.row.Document, Part: p.row.Part}
	o, ok, err := p.origins.Find(x.Document)
	if err == nil && ok {
		x.Source, x.Record = &o.Source, &o.Record
	}
	return p, x, err
}

// packedLine describes a row that is packed while it is served.
func (w *whichPrinter) packedLine(r serve.TracedRow, pieces []serve.TracedPiece) (l tracedLine, err error) {
	var ids []uint32
	for _, piece := range pieces {
		p, x, err := w.example(piece.Member, piece.Example)
		if err != nil {
			return l, err
		}
		of := p.row.AppendInputIDs(nil)[piece.From : piece.From+piece.Tokens]
		ids = append(ids, of...)
		l.Packed += max(1, len(p.row.Segments))
		l.Pieces = append(l.Pieces, tracedPiece{tracedExample: x, Dataset: w.nameOf(p), From: piece.From,
			Tokens: piece.Tokens, Text: p.decode(of), whole: piece.Whole})
	}
	first := &l.Pieces[0]
	l.Row, l.Epoch = r.Position, r.Position/w.trace.Rows()
	l.tracedExample, l.Dataset = first.tracedExample, first.Dataset
	l.Text = w.splits[pieces[0].Member].decode(ids)
	return l, nil
}

func (w *whichPrinter) print(rows []serve.TracedRow) error {
	out := w.cmd.OutOrStdout()
	for _, r := range rows {
		l, err := w.line(r)
		if err != nil {
			return err
		}
		if r.Step >= 0 {
			l.Step, l.Rank = &r.Step, &r.Rank
		}
		if w.asJSON {
			enc := json.NewEncoder(out)
			enc.SetEscapeHTML(false)
			err = enc.Encode(l)
		} else {
			err = writeText(out, l.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *tracedLine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "row %d", l.Row)
	if l.Step != nil {
		fmt.Fprintf(&b, " (epoch %d, step %d, rank %d)", l.Epoch, *l.Step, *l.Rank)
	} else {
		fmt.Fprintf(&b, " (epoch %d)", l.Epoch)
	}
	if l.Pieces != nil {
		fmt.Fprintf(&b, ": %s\n", plural(int64(len(l.Pieces)), "piece"))
		for i := range l.Pieces {
			b.WriteString(l.Pieces[i].String())
		}
		return b.String()
	}
	more := ""
	if l.Packed > 1 {
		more = fmt.Sprintf(" and %d more packed with it", l.Packed-1)
	}
	b.WriteString(": " + l.text(l.Dataset, more, l.Text))
	if l.Target != "" {
		fmt.Fprintf(&b, "  =>\n%s\n", indent(shown(l.Target, nil)))
	}
	return b.String()
}

func (t *tracedPiece) String() string {
	which := ""
	if !t.whole {
		which = fmt.Sprintf(", tokens %d to %d", t.From, t.From+t.Tokens-1)
	}
	return "  " + t.text(t.Dataset, which, t.Text)
}

// text names the example and where it came from, and then shows its text. which says which of its tokens are
// meant, or what else is in its row.
func (x *tracedExample) text(dataset, which, text string) string {
	var b strings.Builder
	if dataset != "" {
		fmt.Fprintf(&b, "dataset %s, ", dataset)
	}
	fmt.Fprintf(&b, "example %d, document %d, part %d%s", x.Example, x.Document, x.Part, which)
	if x.Source != nil {
		fmt.Fprintf(&b, ", record %d of %s", *x.Record, oneLine(*x.Source))
	}
	fmt.Fprintf(&b, "\n%s\n", indent(shown(text, nil)))
	return b.String()
}

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
	Row      int64   `json:"row"`      // its place in the order
	Example  int64   `json:"example"`  // its place in the split
	Document int64   `json:"document"` // for a packed row, the first in the corpus
	Part     int32   `json:"part"`
	Source   *string `json:"source"` // null if the dataset does not say
	Record   *int64  `json:"record"`
	Epoch    int64   `json:"epoch"`
	Step     *int64  `json:"step,omitempty"`
	Rank     *int    `json:"rank,omitempty"`
	Dataset  string  `json:"dataset,omitempty"`   // if there are several
	Packed   int     `json:"documents,omitempty"` // pieces of documents in a packed row
	Text     string  `json:"text"`
	Target   string  `json:"target,omitempty"` // of examples with labels
	// Pieces are the parts of a row that is packed while it is served. The fields above are those
	// of the first.
	Pieces []tracedPiece `json:"pieces,omitempty"`
}

// tracedPiece is what is printed for a document, or a part of one, in a row that is packed while it
// is served.
type tracedPiece struct {
	Example  int64   `json:"example"`
	Document int64   `json:"document"`
	Part     int32   `json:"part"`
	Source   *string `json:"source"`
	Record   *int64  `json:"record"`
	Dataset  string  `json:"dataset,omitempty"`
	From     int64   `json:"from"`   // the piece's first token in the example
	Tokens   int64   `json:"tokens"` // the number of tokens in the piece
	Text     string  `json:"text"`
	whole    bool
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
	p, err := w.openSplit(r.Member)
	if err != nil {
		return l, err
	}
	if err := w.trace.Split(r.Member).ReadRow(r.Example, &p.row); err != nil {
		return l, err
	}
	l = tracedLine{Row: r.Position, Example: r.Example, Document: p.row.Document, Part: p.row.Part,
		Epoch: r.Position / w.trace.Rows(), Text: p.decode(p.row.AppendInputIDs(nil))}
	if len(p.row.Labels) > 0 {
		l.Target = p.decode(p.row.AppendLabels(nil))
	}
	l.Packed = len(p.row.Segments)
	if r.Step >= 0 {
		l.Step, l.Rank = &r.Step, &r.Rank
	}
	if w.trace.Members() > 1 {
		l.Dataset = p.name
	}
	o, ok, err := p.origins.Find(l.Document)
	if err == nil && ok {
		l.Source, l.Record = &o.Source, &o.Record
	}
	return l, err
}

// packedLine describes a row that is packed while it is served.
func (w *whichPrinter) packedLine(r serve.TracedRow, pieces []serve.TracedPiece) (l tracedLine, err error) {
	var ids []uint32
	for _, piece := range pieces {
		p, err := w.openSplit(piece.Member)
		if err != nil {
			return l, err
		}
		if err := w.trace.Split(piece.Member).ReadRow(piece.Example, &p.row); err != nil {
			return l, err
		}
		of := p.row.AppendInputIDs(nil)[piece.From : piece.From+piece.Tokens]
		ids = append(ids, of...)
		t := tracedPiece{Example: piece.Example, Document: p.row.Document, Part: p.row.Part, From: piece.From,
			Tokens: piece.Tokens, Text: p.decode(of), whole: piece.Whole}
		if w.trace.Members() > 1 {
			t.Dataset = p.name
		}
		o, ok, err := p.origins.Find(t.Document)
		if err != nil {
			return l, err
		}
		if ok {
			t.Source, t.Record = &o.Source, &o.Record
		}
		l.Packed += max(1, len(p.row.Segments))
		l.Pieces = append(l.Pieces, t)
	}
	first := &l.Pieces[0]
	l.Row, l.Epoch = r.Position, r.Position/w.trace.Rows()
	l.Example, l.Document, l.Part, l.Dataset = first.Example, first.Document, first.Part, first.Dataset
	l.Source, l.Record, l.Text = first.Source, first.Record, w.splits[pieces[0].Member].decode(ids)
	if r.Step >= 0 {
		l.Step, l.Rank = &r.Step, &r.Rank
	}
	return l, nil
}

func (w *whichPrinter) print(rows []serve.TracedRow) error {
	out := w.cmd.OutOrStdout()
	for _, r := range rows {
		l, err := w.line(r)
		if err != nil {
			return err
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
	if b.WriteString(": "); l.Dataset != "" {
		fmt.Fprintf(&b, "dataset %s, ", l.Dataset)
	}
	fmt.Fprintf(&b, "example %d, document %d, part %d", l.Example, l.Document, l.Part)
	if l.Packed > 1 {
		fmt.Fprintf(&b, " and %d more packed with it", l.Packed-1)
	}
	if l.Source != nil {
		fmt.Fprintf(&b, ", record %d of %s", *l.Record, oneLine(*l.Source))
	}
	fmt.Fprintf(&b, "\n%s\n", indent(shown(l.Text, nil)))
	if l.Target != "" {
		fmt.Fprintf(&b, "  =>\n%s\n", indent(shown(l.Target, nil)))
	}
	return b.String()
}

func (t *tracedPiece) String() string {
	var b strings.Builder
	if b.WriteString("  "); t.Dataset != "" {
		fmt.Fprintf(&b, "dataset %s, ", t.Dataset)
	}
	fmt.Fprintf(&b, "example %d, document %d, part %d", t.Example, t.Document, t.Part)
	if !t.whole {
		fmt.Fprintf(&b, ", tokens %d to %d", t.From, t.From+t.Tokens-1)
	}
	if t.Source != nil {
		fmt.Fprintf(&b, ", record %d of %s", *t.Record, oneLine(*t.Source))
	}
	fmt.Fprintf(&b, "\n%s\n", indent(shown(t.Text, nil)))
	return b.String()
}

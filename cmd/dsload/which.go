package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// whichMemory is the soft limit on the Go runtime: a few rows and the tokenizer are held at a time.
const whichMemory = 64 << 20

type whichFlags struct {
	step, row, document int64
	asJSON              bool
}

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

func newWhichCommand() *cobra.Command {
	var f whichFlags
	cmd := &cobra.Command{
		Use:   "which DATASET... {--step K | --row R | --document D}",
		Short: "Show which source records a training batch was made of, and when a document is seen",
		Long: `Shows the rows of a batch, decoded, with the document, source and record that each came from.
--step counts from 0, at --start. The other flags are the feed's parameters: pass those
of the training run. The rows of all ranks are shown unless --rank is given. Records are
counted from 1: lines of text and JSON lines, records after a CSV header, else documents
of the file.

Nothing is scanned, but with --max-tokens a step is found by computing all earlier ones.
With --pack, the lengths of all earlier rows are read and packed as the server packs them,
and each packed row is shown with every document in it.`,
		Example: `  dsload which data --step 340 --batch-size 32 --world 8
  dsload which data --step 340 --batch-size 32 --world 8 --rank 3 --seed 7 --json
  dsload which data --document 12345 --batch-size 32    # when is it seen?
  dsload which data --step 340 --pack bfd --max-length 4096   # of a packed batch`,
		Annotations: map[string]string{usualFlags: "step row document batch-size world rank seed shuffle bucket json"},
		Args:        folders(minArgs(1, "at least one dataset")),
		RunE: onDatasets(store.ReaderOptions{}, func(cmd *cobra.Command, args []string, at *places) error {
			return runWhich(cmd, args, at, &f)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Int64Var(&f.step, "step", 0, "number of a step, from 0: the rows of this batch")
	flags.Int64Var(&f.row, "row", 0, "row of the order, as in the feed's column row")
	flags.Int64Var(&f.document, "document", 0, "ordinal of a document: when its rows come")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object per row, each on a line")
	inGroup(flags, "What to show", "step", "row", "document")
	for _, p := range feed.Parameters() {
		word, help := parameterHelp(p)
		help = strings.ReplaceAll(help, "max_tokens", "--max-tokens")
		name := flagOfParameter(p.Name)
		flags.String(name, p.Default, help)
		takes(flags, word, name)
		inGroup(flags, "Batches, as the training run asked for them", name)
		words := p.Words()
		if name == "split" {
			words = []string{"train", "val"}
		}
		if words != nil {
			completes(cmd, name, words)
		}
	}
	return cmd
}

func flagOfParameter(name string) string { return strings.ReplaceAll(name, "_", "-") }

// whichQuery returns the feed's query for the flags that were given.
func whichQuery(flags *pflag.FlagSet) (feed.Query, error) {
	values := url.Values{}
	for _, p := range feed.Parameters() {
		if f := flags.Lookup(flagOfParameter(p.Name)); f.Changed {
			values.Set(p.Name, f.Value.String())
		}
	}
	return feed.ParseQuery(values.Encode())
}

func runWhich(cmd *cobra.Command, args []string, at *places, f *whichFlags) (err error) {
	flags := cmd.Flags()
	var asked string
	for _, name := range []string{"step", "row", "document"} {
		if !flags.Changed(name) {
			continue
		}
		if asked != "" {
			return usagef("which: --%s and --%s ask for different things; give one of them", asked, name)
		}
		asked = name
	}
	if asked == "" {
		return usagef("which %s: give --step, --row or --document; see '%s -h'", args[0], cmd.CommandPath())
	}
	if n, _ := flags.GetInt64(asked); n < 0 {
		return usagef("which %s: --%s %d: counts from 0", args[0], asked, n)
	}
	setRuntimeLimit(whichMemory + at.bytes())
	q, err := whichQuery(flags)
	if err != nil {
		return whichError(args, err)
	}
	reader, err := serve.Open(serve.Options{Datasets: args, Memory: serve.MinMemory, FS: at})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	trace, err := reader.Trace(q)
	if err != nil {
		return whichError(args, err)
	}
	w := whichPrinter{cmd: cmd, at: at, trace: trace, split: q.Split, asJSON: f.asJSON,
		parts: make([]*tracedPart, trace.Parts())}
	defer func() { err = errors.Join(err, w.close()) }()
	rows, err := f.rows(flags, trace, asked)
	if err == nil && len(rows) == 0 {
		err = w.noRows(f, asked)
	}
	if err != nil {
		return whichError(args, err)
	}
	return w.print(rows)
}

// rows finds what was asked for.
func (f *whichFlags) rows(flags *pflag.FlagSet, trace *serve.Trace, asked string) (rows []serve.TracedRow, err error) {
	switch asked {
	case "step":
		rank := -1
		if r := flags.Lookup("rank"); r.Changed {
			if rank, err = strconv.Atoi(r.Value.String()); err != nil {
				return nil, err
			}
		}
		return trace.Step(f.step, rank)
	case "row":
		row, err := trace.Row(f.row)
		return []serve.TracedRow{row}, err
	}
	for part := range trace.Parts() {
		if trace.Split(part).Schema().Segments {
			return nil, errPackedRows
		}
		found, err := trace.Document(part, f.document)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

var errPackedRows = errors.New("which --document: the rows are packed, and each names only the first of its " +
	"documents; --step and --row show them, and a dataset built without --pack says when a document is seen")

// whichError writes a feed's error with its parameter as a flag.
func whichError(args []string, err error) error {
	var request *feed.RequestError
	if !errors.As(err, &request) {
		return err
	}
	reason := request.Reason
	var param *feed.ParamError
	if errors.As(err, &param) {
		reason = "--" + flagOfParameter(param.Param) + ": " + param.Reason
	}
	if request.Hint != "" && !strings.HasSuffix(reason, "?") {
		reason += "; " + request.Hint
	}
	return usagef("which %s: %s", strings.Join(args, " "), reason)
}

// whichPrinter prints rows with what their datasets know about them.
type whichPrinter struct {
	cmd    *cobra.Command
	at     *places
	trace  *serve.Trace
	split  string
	asJSON bool
	parts  []*tracedPart // nil until needed
}

// tracedPart is one dataset's split.
type tracedPart struct {
	name    string
	decode  func([]uint32) string
	origins *origins.Split
	row     shard.Row
}

func (w *whichPrinter) part(i int) (*tracedPart, error) {
	if w.parts[i] != nil {
		return w.parts[i], nil
	}
	name, dir, d := w.trace.Dataset(i)
	p := &tracedPart{name: name, decode: func(ids []uint32) string { return fmt.Sprint(ids) }}
	w.parts[i] = p
	if tok, err := tokenizers.OfDataset(w.at, dir, d.Manifest()); err != nil {
		warn(w.cmd.ErrOrStderr(), "rows are shown as ids: "+err.Error())
	} else {
		p.decode = tok.Decode
	}
	var err error
	p.origins, err = origins.OpenSplit(w.at, dir, d.Manifest(), w.split)
	if errors.Is(err, origins.ErrNone) {
		warn(w.cmd.ErrOrStderr(), fmt.Sprintf("%s: its build did not note where documents came from; "+
			"sources and records are left out; build it again to have them", dir))
		err = nil
	}
	return p, err
}

func (w *whichPrinter) close() (err error) {
	for _, p := range w.parts {
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
	p, err := w.part(r.Part)
	if err != nil {
		return l, err
	}
	if err := w.trace.Split(r.Part).ReadRow(r.Example, &p.row); err != nil {
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
	if w.trace.Parts() > 1 {
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
		p, err := w.part(piece.Part)
		if err != nil {
			return l, err
		}
		if err := w.trace.Split(piece.Part).ReadRow(piece.Example, &p.row); err != nil {
			return l, err
		}
		of := p.row.AppendInputIDs(nil)[piece.From : piece.From+piece.Tokens]
		ids = append(ids, of...)
		t := tracedPiece{Example: piece.Example, Document: p.row.Document, Part: p.row.Part, From: piece.From,
			Tokens: piece.Tokens, Text: p.decode(of), whole: piece.Whole}
		if w.trace.Parts() > 1 {
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
	l.Source, l.Record, l.Text = first.Source, first.Record, w.parts[pieces[0].Part].decode(ids)
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

// noRows explains why nothing was found.
func (w *whichPrinter) noRows(f *whichFlags, asked string) error {
	if asked != "document" {
		return usagef("which: step %d has no rows for this rank: "+
			"the uneven end of an epoch has rows for the first ranks only", f.step)
	}
	_, dir, d := w.trace.Dataset(0)
	m := d.Manifest()
	if n := counts.Of(m.Counters, nil).Documents; f.document >= n && len(m.Sources) > 0 && w.trace.Parts() == 1 && n > 0 {
		return usagef("which %s: --document %d: the build read %s, which count from 0", dir, f.document,
			plural(n, "document"))
	}
	for part := range w.trace.Parts() {
		_, dir, _ := w.trace.Dataset(part)
		other, err := w.trace.SplitOf(part, f.document)
		if err != nil {
			return err
		}
		if other != "" {
			return fault.Errorf(
				"which %s: document %d has no rows in split %s: it is in split %s; pass --split %s",
				dir, f.document, w.split, other, other)
		}
	}
	return fault.Errorf("which %s: document %d has no rows in split %s from row %s on: "+
		"it was left out by the build, or comes before --start", dir, f.document, w.split, w.cmd.Flag("start").Value)
}

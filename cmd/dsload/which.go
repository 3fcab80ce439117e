package main

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/store"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// whichMemory is the soft limit on the Go runtime: a few rows and the tokenizer are held at a time.
const whichMemory = 64 << 20

type whichFlags struct {
	step, row, document int64
	asJSON              bool
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
		Annotations: map[string]string{help.UsualFlags: "step row document batch-size world rank seed shuffle bucket json"},
		Args:        folders(minArgs(1, "at least one dataset")),
		RunE: onDatasets(store.ReaderOptions{}, func(cmd *cobra.Command, args []string, at *datasetFS) error {
			return runWhich(cmd, args, at, &f)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Int64Var(&f.step, "step", 0, "number of a step, from 0: the rows of this batch")
	flags.Int64Var(&f.row, "row", 0, "row of the order, as in the feed's column row")
	flags.Int64Var(&f.document, "document", 0, "ordinal of a document: when its rows come")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object per row, each on a line")
	help.InGroup(flags, "What to show", "step", "row", "document")
	for _, p := range feed.Parameters() {
		word, text := help.Parameter(p)
		text = strings.ReplaceAll(text, "max_tokens", "--max-tokens")
		name := flagOfParameter(p.Name)
		flags.String(name, p.Default, text)
		help.NameValues(flags, word, name)
		help.InGroup(flags, "Batches, as the training run asked for them", name)
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

func runWhich(cmd *cobra.Command, args []string, at *datasetFS, f *whichFlags) (err error) {
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
	setSoftLimit(whichMemory + at.buckets.MemoryBytes())
	values := url.Values{} // the feed's query
	for _, p := range feed.Parameters() {
		if f := flags.Lookup(flagOfParameter(p.Name)); f.Changed {
			values.Set(p.Name, f.Value.String())
		}
	}
	q, err := feed.ParseQuery(values.Encode())
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
		splits: make([]*tracedSplit, trace.Members())}
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
	for i := range trace.Members() {
		if trace.Split(i).Schema().Segments {
			return nil, errPackedRows
		}
		found, err := trace.Document(i, f.document)
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
	request, ok := errors.AsType[*feed.RequestError](err)
	if !ok {
		return err
	}
	reason := request.Reason
	if param, ok := errors.AsType[*feed.ParamError](err); ok {
		reason = "--" + flagOfParameter(param.Param) + ": " + param.Reason
	}
	if request.Hint != "" && !strings.HasSuffix(reason, "?") {
		reason += "; " + request.Hint
	}
	return usagef("which %s: %s", strings.Join(args, " "), reason)
}

// noRows explains why nothing was found.
func (w *whichPrinter) noRows(f *whichFlags, asked string) error {
	if asked != "document" {
		return usagef("which: step %d has no rows for this rank: "+
			"the uneven end of an epoch has rows for the first ranks only", f.step)
	}
	_, dir, d := w.trace.Dataset(0)
	m := d.Manifest()
	n := counts.Of(m.Counters, nil).Documents
	if n > 0 && f.document >= n && len(m.Sources) > 0 && w.trace.Members() == 1 {
		return usagef("which %s: --document %d: the build read %s, which count from 0", dir, f.document,
			plural(n, "document"))
	}
	for i := range w.trace.Members() {
		_, dir, _ := w.trace.Dataset(i)
		other, err := w.trace.SplitOf(i, f.document)
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

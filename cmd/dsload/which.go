package main

import (
	"cmp"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/view"
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
	addFeedFlags(cmd)
	return cmd
}

// groupBatches is the title of the flags that addFeedFlags adds.
const groupBatches = "Batches, as the training run asked for them"

// addFeedFlags adds the parameters of batches as flags.
func addFeedFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, p := range feed.Parameters() {
		word, text := help.Parameter(p)
		text = strings.ReplaceAll(text, "max_tokens", "--max-tokens")
		name := flagOfParameter(p.Name)
		flags.String(name, p.Default, text)
		help.NameValues(flags, word, name)
		help.InGroup(flags, groupBatches, name)
		words := p.Words()
		if name == "split" {
			words = []string{"train", "val"}
		}
		if words != nil {
			completes(cmd, name, words)
		}
	}
}

// feedQuery returns the query of the flags that addFeedFlags added.
func feedQuery(flags *pflag.FlagSet) (feed.Query, error) {
	values := url.Values{}
	for _, p := range feed.Parameters() {
		if f := flags.Lookup(flagOfParameter(p.Name)); f.Changed {
			values.Set(p.Name, f.Value.String())
		}
	}
	return feed.ParseQuery(values.Encode())
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
	name := strings.Join(args, " ")
	run, closeRun, err := openRun(cmd, name, args, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	rows, err := f.rows(flags, run.Trace, asked)
	if err == nil && len(rows) == 0 {
		err = f.noRows(flags, run)
	}
	if err != nil {
		return feedError("which", name, err)
	}
	p := rowPrinter{out: cmd.OutOrStdout(), asJSON: f.asJSON, screen: marked.Screen{Colour: colourful(cmd.OutOrStdout())}}
	return p.printAll(cmd.Context(), run.List(rows), 0, 0)
}

// openRun opens the datasets that a run reads with the feed's flags, and returns what closes them. Messages call them by
// a name.
func openRun(cmd *cobra.Command, name string, args []string, at *datasetFS) (*view.Run, func() error, error) {
	q, err := feedQuery(cmd.Flags())
	if err != nil {
		return nil, nil, feedError(cmd.Name(), name, err)
	}
	reader, err := serve.Open(serve.Options{Datasets: args, Memory: serve.MinMemory, FS: at})
	if err != nil {
		return nil, nil, err
	}
	trace, err := reader.Trace(q)
	if err != nil {
		return nil, nil, errors.Join(feedError(cmd.Name(), name, err), reader.Close())
	}
	run := view.NewRun(at, trace, func(text string) { warn(cmd.ErrOrStderr(), text) })
	return run, func() error { return errors.Join(run.Close(), reader.Close()) }, nil
}

// rows finds what was asked for.
func (f *whichFlags) rows(flags *pflag.FlagSet, trace *serve.Trace, asked string) (rows []serve.TracedRow, err error) {
	switch asked {
	case "step":
		return stepRows(flags, trace, f.step)
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

// stepRows returns the rows of a step: those of all ranks, unless the flags name one.
func stepRows(flags *pflag.FlagSet, trace *serve.Trace, step int64) (rows []serve.TracedRow, err error) {
	rank := -1
	if r := flags.Lookup("rank"); r.Changed {
		if rank, err = strconv.Atoi(r.Value.String()); err != nil {
			return nil, err
		}
	}
	rows, err = trace.Step(step, rank)
	if err == nil && len(rows) == 0 {
		err = fault.Kindf(fault.Usage, "step %d has no rows for this rank: "+
			"the uneven end of an epoch has rows for the first ranks only", step)
	}
	return rows, err
}

var errPackedRows = errors.New("which --document: the rows are packed, and each names only the first of its " +
	"documents; --step and --row show them, and a dataset built without --pack says when a document is seen")

// feedError writes a feed's error with its parameter as a flag.
func feedError(command, datasets string, err error) error {
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
	return usagef("%s %s: %s", command, datasets, reason)
}

// noRows explains why no row of a document was found.
func (f *whichFlags) noRows(flags *pflag.FlagSet, run *view.Run) error {
	start, split := flags.Lookup("start").Value.String(), flags.Lookup("split").Value.String()
	for i := range run.Members() {
		_, dir, d := run.Dataset(i)
		if other, err := serve.SplitOf(d, split, f.document); err != nil || other != "" {
			return cmp.Or(err, noDocument("which", dir, d, split, f.document, start))
		}
	}
	_, dir, d := run.Dataset(0)
	return noDocument("which", dir, d, split, f.document, start)
}

// noDocument explains why a document of a dataset has no rows in a split, from a row of the order on if start is not "".
func noDocument(command, dir string, d *shard.Dataset, split string, document int64, start string) error {
	m := d.Manifest()
	n := counts.Of(m.Counters, nil).Documents
	if n > 0 && document >= n && len(m.Sources) > 0 {
		return usagef("%s %s: --document %d: the build read %s, which count from 0", command, dir, document,
			plural(n, "document"))
	}
	other, err := serve.SplitOf(d, split, document)
	switch {
	case err != nil:
		return err
	case other != "":
		return fault.Errorf("%s %s: document %d has no rows in split %s: it is in split %s; pass --split %s", command, dir,
			document, split, other, other)
	case start == "":
		return fault.Errorf("%s %s: document %d has no rows in split %s: it was left out by the build", command, dir,
			document, split)
	}
	return fault.Errorf("%s %s: document %d has no rows in split %s from row %s on: it was left out by the build, or "+
		"comes before --start", command, dir, document, split, start)
}

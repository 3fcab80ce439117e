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
		Args:        folders(someArgs("at least one dataset")),
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
	help.InGroup(flags, groupRows, "step", "row", "document")
	addFeedFlags(cmd)
	return cmd
}

// Titles of the flags that view and which share.
const (
	groupRows    = "Which rows"
	groupBatches = "Batches, as the training run asked for them"
)

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

func flagOfParameter(name string) string { return strings.ReplaceAll(name, "_", "-") }

func runWhich(cmd *cobra.Command, args []string, at *datasetFS, f *whichFlags) (err error) {
	asked, err := askedRows(cmd)
	switch {
	case err != nil:
		return err
	case asked == "":
		return usagef("which %s: give --step, --row or --document; see '%s -h'", args[0], cmd.CommandPath())
	}
	setSoftLimit(whichMemory + at.buckets.MemoryBytes())
	name := strings.Join(args, " ")
	run, closeRun, err := openRun(cmd, name, args, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	rows, err := f.rows(cmd.Flags(), run.Trace, asked)
	if err == nil && len(rows) == 0 {
		err = noDocument(cmd, name, run, f.document)
	}
	if err != nil {
		return feedError("which", name, err)
	}
	p := rowPrinter{out: cmd.OutOrStdout(), asJSON: f.asJSON, screen: marked.Screen{Colour: colourful(cmd.OutOrStdout())}}
	return p.printAll(cmd.Context(), run.List(rows), 0, 0)
}

// askedRows returns the flag that says which rows to show, "" if none does.
func askedRows(cmd *cobra.Command) (asked string, err error) {
	cmd.Flags().Visit(func(p *pflag.Flag) {
		switch {
		case help.Title(p) != groupRows:
		case p.Value.Type() == "int64" && p.Value.String()[0] == '-':
			err = usagef("%s: --%s %s: counts from 0", cmd.Name(), p.Name, p.Value)
		case p.Name == "limit" || p.Name == "grep":
		case asked != "":
			err = usagef("%s: --%s and --%s ask for different things; give one of them", cmd.Name(), asked, p.Name)
		default:
			asked = p.Name
		}
	})
	return asked, err
}

// openRun opens the datasets that a run reads with the feed's flags, and returns what closes them. Messages call them by
// a name.
func openRun(cmd *cobra.Command, name string, args []string, at *datasetFS) (*view.Run, func() error, error) {
	values := url.Values{} // the feed's query
	for _, p := range feed.Parameters() {
		if f := cmd.Flag(flagOfParameter(p.Name)); f.Changed {
			values.Set(p.Name, f.Value.String())
		}
	}
	q, err := feed.ParseQuery(values.Encode())
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

// noDocument explains why a document has no rows in a split.
func noDocument(cmd *cobra.Command, name string, run *view.Run, document int64) error {
	split, left := cmd.Flag("split").Value.String(), "it was left out by the build"
	for i := range run.Members() {
		_, _, d := run.Dataset(i)
		if other, err := serve.SplitOf(d, split, document); err != nil || other != "" {
			return cmp.Or(err, fault.Errorf("%s %s: document %d has no rows in split %s: it is in split %s; pass --split %s",
				cmd.Name(), name, document, split, other, other))
		}
		m := d.Manifest()
		n := counts.Of(m.Counters, nil).Documents
		if n > 0 && document >= n && len(m.Sources) > 0 && run.Members() == 1 {
			return usagef("%s %s: --document %d: the build read %s, which count from 0", cmd.Name(), name, document,
				plural(n, "document"))
		}
	}
	if cmd.Name() == "which" {
		split += " from row " + cmd.Flag("start").Value.String() + " on"
		left += ", or comes before --start"
	}
	return fault.Errorf("%s %s: document %d has no rows in split %s: %s", cmd.Name(), name, document, split, left)
}

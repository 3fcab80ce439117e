package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/markup"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/view"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

const (
	viewMemory  = 96 << 20 // the soft limit on the Go runtime: a row and the tokenizer are held at a time
	viewedText  = 1000     // rows that are made of text, unless one further on is asked for
	maxPageRows = 1000     // rows of a page without --limit
)

type viewFlags struct {
	row, document, step       int64
	source, grep, html        string
	longest, shortest, random bool
	limit                     int64
	tokens, asJSON, given     bool
	text                      *pflag.FlagSet // flags of a build

	pattern *regexp.Regexp // grep's
	ofText  bool           // rows are made of sources
	name    string         // what is viewed, for messages
	more    string         // what a message adds if text was not read to its end
}

func newViewCommand() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "view {DATASET | SOURCE...}",
		Short: "Show a row, whole, as text: what carries loss, where documents begin, where it came from",
		Long: `Shows rows of a dataset, whole, as text: what carries loss in colour, or between ⟦ and ⟧
where there are no colours, the borders of documents in packed rows, special tokens, and
where the row came from. Without a flag it begins with the first row. On a terminal n and p
go to the next row and to the previous one, / searches, and n and p then go through what it
finds; t shows tokens, space, b, j and k scroll, q quits.

A SOURCE is shown as a build would make rows of it: its first rows are built, with the
build's flags, into a folder that is removed again.

--step shows the rows of a batch. It takes the feed's parameters as flags: pass those of the
training run. --grep ends with exit code 1 if no row matches.`,
		Example: `  dsload view data                                   # the first row; n and p go on, / searches
  dsload view data --row 34 --tokens
  dsload view chats.jsonl --format chat --tokenizer path/to/model     # before it is built
  dsload view data --longest
  dsload view s3://bucket/data --grep '(?i)as an ai' --limit 10
  dsload view data --step 3 --batch-size 4 --world 2 --rank 1
  dsload view data --source corpus.jsonl --limit 20 --html rows.html
  dsload view data --random --seed 7 --json | jq .loss_tokens`,
		Annotations: map[string]string{help.UsualFlags: "row document source longest shortest random step grep limit tokens " +
			"html json split format tokenizer"},
		Args: someArgs("a dataset, or text"),
		RunE: func(cmd *cobra.Command, args []string) error { return runView(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Int64Var(&f.row, "row", 0, "number of a row of the split, from 0")
	flags.Int64Var(&f.document, "document", 0, "ordinal of a document: its rows")
	flags.StringVar(&f.source, "source", "", "name of a source, or the end of its path: its rows")
	flags.BoolVar(&f.longest, "longest", false, "the longest row")
	flags.BoolVar(&f.shortest, "shortest", false, "the shortest row")
	flags.BoolVar(&f.random, "random", false, "some row; --seed makes it the same one again")
	flags.Int64Var(&f.step, "step", 0, "number of a step of a run, from 0: the rows of this batch")
	flags.StringVar(&f.grep, "grep", "", "only rows whose text matches this regular expression")
	flags.Int64VarP(&f.limit, "limit", "n", 0, "maximum number of rows, 0 for all (default 1; all with --document, --step "+
		"and --grep)")
	flags.BoolVar(&f.tokens, "tokens", false, "show where each token begins")
	flags.StringVar(&f.html, "html", "", "write the rows to `FILE`: one self-contained page")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object per row, each on a line")
	flags.BoolVar(&f.given, "given", false, "show the rows on stdin, a JSON line each, for dsload.show")
	_ = flags.MarkHidden("given") // the flag exists
	help.NameValues(flags, "NAME", "source")
	help.NameValues(flags, "RE", "grep")
	help.InGroup(flags, groupRows, "row", "document", "source", "longest", "shortest", "random", "step", "grep", "limit")
	help.InGroup(flags, help.GroupOutput, "tokens")
	addFeedFlags(cmd)
	flags.Lookup("seed").Usage = "seed of the shuffling, or of --random"
	f.text = textFlags(flags)
	flags.Lookup("pack").Usage += "; for text, when it is built"
	flags.Lookup("max-length").Usage += "; for text, longest example"
	return cmd
}

// check returns the flag that says which rows, or an error for flags that do not go together.
func (f *viewFlags) check(cmd *cobra.Command) (asked string, err error) {
	if asked, err = askedRows(cmd); err != nil {
		return "", err
	}
	if f.grep != "" {
		if f.pattern, err = regexp.Compile(f.grep); err != nil {
			return "", usagef("view --grep %s: %v", f.grep, err)
		}
	}
	several := f.grep != "" || cmd.Flags().Changed("limit") && f.limit != 1
	if several && (f.longest || f.shortest || f.random) {
		return "", usagef("view: --%s is one row, and --grep and --limit would go on with its neighbours; leave them "+
			"out, or the flag", asked)
	}
	if f.asJSON && f.html != "" {
		return "", usagef("view: --json is for programs and --html for people; give one of them")
	}
	cmd.Flags().Visit(func(p *pflag.Flag) {
		usual := p.Name == "split" || p.Name == "seed" && f.random || f.ofText && slices.Contains(alsoForText, p.Name)
		if help.Title(p) == groupBatches && asked != "step" && !usual {
			err = usagef("view: --%s is about the batches of a run; give --step with it, or leave it out", p.Name)
		}
	})
	return asked, err
}

// alsoForText are the feed's parameters that are options of a build too.
var alsoForText = []string{"pack", "max-length"}

func runView(cmd *cobra.Command, args []string, f *viewFlags) (err error) {
	if err := f.recognize(args); err != nil {
		return err
	}
	asked, err := f.check(cmd)
	if err != nil {
		return err
	}
	if err := checkPage(f.html); err != nil {
		return fmt.Errorf("view --html %s: %w", f.html, err)
	}
	o := store.ReaderOptions{BlockBytes: 256 << 10} // about a record batch
	if f.grep != "" || f.longest || f.shortest {
		o.BlockBytes = 0 // much is read
	}
	show := onDatasets(o, func(cmd *cobra.Command, args []string, at *datasetFS) error {
		return f.show(cmd, args, at, asked)
	})
	if !f.ofText {
		if err = folders(cobra.ArbitraryArgs)(cmd, args); err == nil {
			err = show(cmd, args)
		}
		if !inBucket(args[0]) || !errors.Is(err, shard.ErrNotFound) || errors.Is(err, shard.ErrUnfinished) {
			return err
		}
	}
	scratch, err := os.MkdirTemp("", "dsload-view-")
	if err != nil {
		return fmt.Errorf("view: make a folder for the rows: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	dir := filepath.Join(scratch, "rows")
	if err := f.build(cmd, args, dir); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // its reader may have seen enough: a write then fails, and the folder is removed
	return show(cmd, []string{dir})
}

// recognize finds out whether the arguments are sources of a build. What lies in a bucket may be either.
func (f *viewFlags) recognize(args []string) error {
	f.name, f.ofText = uris.Several(args), true
	asked := givenOptions(f.text)
	for _, arg := range args {
		switch {
		case !isServedFolder(arg) && (!inBucket(arg) || len(asked) > 0):
			continue
		case len(asked) > 0:
			return usagef("view: %s is about text, and %s was built already; leave the flag out, or give the text",
				strings.SplitN(asked[0], "=", 2)[0], arg)
		case len(args) > 1:
			return usagef("view %s: give one dataset, or text to build", strings.Join(args, " "))
		}
		f.ofText = false
	}
	return nil
}

// build makes a dataset of the first rows of sources.
func (f *viewFlags) build(cmd *cobra.Command, sources []string, dir string) error {
	flags := append(givenOptions(f.text), "--out="+dir, "--discarded", "--progress=none")
	for _, name := range alsoForText {
		if p := cmd.Flags().Lookup(name); p.Changed {
			flags = append(flags, "--"+name+"="+p.Value.String())
			p.Changed = false // the rows are packed by now
		}
	}
	if !f.text.Changed("max-examples") {
		flags = append(flags, fmt.Sprintf("--max-examples=%d", max(viewedText, f.row+max(f.limit, 1))))
	}
	summary, err := runBuildProcess(cmd, flags, sources, cmd.InOrStdin(), false)
	if strings.Contains(summary.Stopped, "max-examples") {
		f.more = "; these are the first rows of the text: --max-examples reads on"
	}
	return err
}

// find finds the rows that were asked for: those of a list from one on.
func (f *viewFlags) find(cmd *cobra.Command, run *view.Run, asked string) (l *view.List, start int64, err error) {
	if asked == "step" {
		rows, err := stepRows(cmd.Flags(), run.Trace, f.step)
		return run.List(rows), 0, feedError("view", f.name, err)
	}
	s, err := run.Of(0)
	if err != nil {
		return nil, 0, err
	}
	l = s.All()
	switch asked {
	case "row":
		if start = f.row; f.row >= l.Len {
			err = usagef("view %s: --row %d: there are %s, which count from 0%s", f.name, f.row, plural(l.Len, "row"), f.more)
		}
	case "longest", "shortest":
		start, err = s.Longest(f.shortest)
	case "random":
		seed := uint64(time.Now().UnixNano())
		if p := cmd.Flag("seed"); p.Changed {
			if seed, err = strconv.ParseUint(p.Value.String(), 10, 64); err != nil {
				err = usagef("view: --seed %s: is not a whole number", p.Value)
			}
		}
		start = rand.New(rand.NewPCG(seed, 0)).Int64N(l.Len)
	case "document":
		if l, err = s.Documents(f.document, f.document+1); err == nil && l.Len == 0 {
			err = noDocument(cmd, f.name, run, f.document)
		}
	case "source":
		var names []string
		if l, names, err = s.Source(f.source); err == nil && l.Len == 0 {
			err = usagef("view %s: --source %s has no rows; there are %s%s", f.name, f.source, strings.Join(names, ", "), f.more)
		}
	}
	return l, start, err
}

// show shows the rows: on a page, as JSON, one after another, or with keys on a terminal.
func (f *viewFlags) show(cmd *cobra.Command, args []string, at *datasetFS, asked string) (err error) {
	setSoftLimit(viewMemory + at.buckets.MemoryBytes())
	run, closeRun, err := openRun(cmd, f.name, args, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	if f.given {
		return printGiven(cmd, run)
	}
	list, start, err := f.find(cmd, run, asked)
	if err != nil {
		return err
	}
	if list.Pattern = f.pattern; f.more != "" && asked != "row" && (asked != "" || f.grep != "") {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+strings.TrimPrefix(f.more, "; "))
	}
	out, limit, hasLimit := cmd.OutOrStdout(), f.limit, cmd.Flags().Changed("limit")
	if !hasLimit && asked != "document" && asked != "step" && f.grep == "" {
		limit = 1
	}
	p := rowPrinter{out: out, asJSON: f.asJSON, screen: marked.Screen{Colour: colourful(out), Tokens: f.tokens}}
	keys, ok := cmd.InOrStdin().(*os.File)
	switch {
	case f.html != "":
		if p.page = new(strings.Builder); !hasLimit {
			limit = cmp.Or(limit, maxPageRows)
		}
		if err = p.printAll(cmd.Context(), list, start, limit); err == nil {
			err = f.writePage(out, &p, !hasLimit && p.n == maxPageRows)
		}
	case !f.asJSON && !hasLimit && isTerminal(unguarded(out)) && os.Getenv("TERM") != "dumb" && ok && term.IsTerminal(int(keys.Fd())):
		err = pageThrough(cmd.Context(), &view.Pager{List: list, Screen: p.screen, Out: unguarded(out)}, start, keys)
	default:
		err = p.printAll(cmd.Context(), list, start, limit)
	}
	if err == io.EOF {
		err = fault.Errorf("view %s: no row matches --grep %s%s", f.name, f.grep, f.more)
	}
	return err
}

// writePage writes the page of rows, and says whether it is full.
func (f *viewFlags) writePage(out io.Writer, p *rowPrinter, full bool) error {
	page := markup.Page(f.name, marked.PageStyle, markup.Format("<main><h1><bdi>%s</bdi></h1>\n<p class=\"dsload-row\">"+
		"<span class=\"loss\">coloured</span>: carries loss; <span class=\"special\">framed</span>: a special token</p>\n%s</main>\n",
		f.name, markup.HTML(p.page.String())))
	if err := writePage(f.html, page); err != nil {
		return fmt.Errorf("view --html %s: %w", f.html, err)
	}
	most := ""
	if full {
		most = ", the most of a page without --limit"
	}
	return writeText(out, fmt.Sprintf("wrote %s: %s%s\n", f.html, plural(p.n, "row"), most))
}

// pageThrough shows rows on a terminal, and follows keys.
func pageThrough(ctx context.Context, p *view.Pager, start int64, keys *os.File) (err error) {
	before, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, term.Restore(int(keys.Fd()), before)) }()
	typed := make(chan []byte)
	go func() { // ends with the process: a read of a terminal cannot be called off
		defer close(typed)
		for {
			buf := make([]byte, 64)
			n, err := keys.Read(buf)
			if err != nil {
				return
			}
			typed <- buf[:n]
		}
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, resizeSignal)
	defer signal.Stop(resized)
	p.Typed, p.Resized = typed, resized
	p.Size = func() (columns, lines int) {
		if columns, lines, err := term.GetSize(int(keys.Fd())); err == nil && columns > 0 && lines > 1 {
			return columns, lines
		}
		return defaultColumns, 24
	}
	return p.Run(ctx, start)
}

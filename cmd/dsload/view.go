package main

import (
	"cmp"
	"context"
	"encoding/json"
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
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/markup"
	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/textcache"
	"github.com/dsload/dsload/internal/view"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

const (
	viewMemory  = 96 << 20 // the soft limit on the Go runtime: a row and the tokenizer are held at a time
	viewedText  = 1000     // rows that are made of text, unless one further on is asked for
	maxPageRows = 1000     // rows of a page, unless --limit says more
)

type viewFlags struct {
	row, document, step       int64
	source, grep, html        string
	longest, shortest, random bool
	limit                     int64
	tokens, asJSON, given     bool
	text                      *pflag.FlagSet // flags of a build

	pattern *regexp.Regexp // grep's
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
where the row came from. Without a flag it begins with the first row. On a terminal, keys
go to the next row and to the previous one, and search.

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
		Args: minArgs(1, "a dataset, or text"),
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
	help.InGroup(flags, "Which rows", "row", "document", "source", "longest", "shortest", "random", "step", "grep", "limit")
	help.InGroup(flags, help.GroupOutput, "tokens")
	addFeedFlags(cmd)
	flags.Lookup("seed").Usage = "seed of the shuffling, or of --random"
	f.text = textFlags(flags)
	flags.Lookup("pack").Usage += "; for text, when it is built"
	flags.Lookup("max-length").Usage += "; for text, longest example"
	return cmd
}

// check returns an error for flags that do not go together, and the one that says which rows.
func (f *viewFlags) check(flags *pflag.FlagSet) (asked string, err error) {
	for _, name := range []string{"row", "document", "source", "longest", "shortest", "random", "step"} {
		switch {
		case !flags.Changed(name):
			continue
		case asked != "":
			return "", usagef("view: --%s and --%s ask for different rows; give one of them", asked, name)
		}
		asked = name
	}
	for _, name := range []string{"row", "document", "step", "limit"} {
		if n, _ := flags.GetInt64(name); n < 0 {
			return "", usagef("view: --%s %d: counts from 0", name, n)
		}
	}
	if f.asJSON && f.html != "" {
		return "", usagef("view: --json is for programs and --html for people; give one of them")
	}
	flags.Visit(func(p *pflag.Flag) {
		forText := f.name != "" && slices.Contains(alsoForText, p.Name)
		if help.Title(p) == groupBatches && asked != "step" && p.Name != "split" && !forText && (p.Name != "seed" || !f.random) {
			err = usagef("view: --%s is about the batches of a run; give --step with it, or leave it out", p.Name)
		}
	})
	return asked, err
}

// alsoForText are the feed's parameters that are options of a build too.
var alsoForText = []string{"pack", "max-length"}

func runView(cmd *cobra.Command, args []string, f *viewFlags) (err error) {
	isText, err := f.isText(args)
	if err != nil {
		return err
	}
	if isText {
		f.name = textcache.SourcesText(args)
	}
	asked, err := f.check(cmd.Flags())
	if err == nil && f.grep != "" {
		if f.pattern, err = regexp.Compile(f.grep); err != nil {
			err = usagef("view --grep %s: %v", f.grep, err)
		}
	}
	if err == nil {
		if err = checkPage(f.html); err != nil {
			err = fmt.Errorf("view --html %s: %w", f.html, err)
		}
	}
	if err != nil {
		return err
	}
	show := onDatasets(store.ReaderOptions{}, func(cmd *cobra.Command, args []string, at *datasetFS) error {
		return f.show(cmd, args[0], at, asked)
	})
	if !isText {
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
	return show(cmd, []string{dir})
}

// isText reports whether the arguments are sources of a build. What lies in a bucket may be either.
func (f *viewFlags) isText(args []string) (bool, error) {
	asked := given(f.text)
	for _, arg := range args {
		switch {
		case !isServedFolder(arg) && (!inBucket(arg) || len(asked) > 0):
			continue
		case len(asked) > 0:
			return false, usagef("view: %s is about text, and %s was built already; leave the flag out, or give the text",
				strings.SplitN(asked[0], "=", 2)[0], arg)
		case len(args) > 1:
			return false, usagef("view %s: give one dataset, or text to build", strings.Join(args, " "))
		}
		return false, nil
	}
	return true, nil
}

// build makes a dataset of the first rows of sources.
func (f *viewFlags) build(cmd *cobra.Command, sources []string, dir string) error {
	flags := append(given(f.text), "--out="+dir, "--progress=none")
	for _, name := range alsoForText {
		if p := cmd.Flags().Lookup(name); p.Changed {
			flags = append(flags, "--"+name+"="+p.Value.String())
			p.Changed = false // the rows are packed by now
		}
	}
	if !f.text.Changed("max-examples") {
		flags = append(flags, "--max-examples="+strconv.FormatInt(max(viewedText, f.row+max(f.limit, 1)), 10))
	}
	summary, err := runBuildProcess(cmd, flags, sources, cmd.InOrStdin())
	if strings.Contains(summary.Stopped, "max-examples") {
		f.more = "; these are the first rows of the text: --max-examples reads on"
	}
	return err
}

// found is the rows that were asked for, from the one with a number on.
type found struct {
	list  *view.List
	start int64
	close []func() error
}

// find opens a dataset and finds the rows.
func (f *viewFlags) find(cmd *cobra.Command, arg string, at *datasetFS, asked string, r *found) error {
	flags := cmd.Flags()
	if asked == "step" {
		run, closeRun, err := openRun(cmd, []string{arg}, at)
		if err != nil {
			return err
		}
		r.close = append(r.close, closeRun)
		rows, err := stepRows(flags, run.Trace, f.step)
		r.list = run.List(rows)
		return feedError("view", []string{f.name}, err)
	}
	dir, split := serve.DatasetDir(arg), flags.Lookup("split").Value.String()
	m, err := shard.ReadManifest(at, dir)
	if err != nil {
		return err
	}
	d, err := shard.ReaderOptions{}.OpenManifest(at, dir, m)
	if err != nil {
		return err
	}
	r.close = append(r.close, d.Close)
	rows, err := d.Split(split)
	if errors.Is(err, shard.ErrNoSplit) {
		return usagef("view %s: --split %s: the dataset has no such split", f.name, split)
	}
	if err != nil {
		return err
	}
	s, err := view.Open(at, dir, m, rows, func(text string) { warn(cmd.ErrOrStderr(), text) })
	if err != nil {
		return err
	}
	r.close = append(r.close, s.Close)
	if f.given {
		given, err := readGiven(cmd.InOrStdin())
		r.list = s.Given(given)
		return err
	}
	if err = f.choose(s, asked, flags, r); err == nil && r.list.Len == 0 && asked == "document" {
		err = noDocument("view", f.name, d, split, f.document, "")
	}
	return err
}

// choose finds rows of a split.
func (f *viewFlags) choose(s *view.Split, asked string, flags *pflag.FlagSet, r *found) (err error) {
	r.list = s.All()
	switch n := r.list.Len; asked {
	case "row":
		if r.start = f.row; f.row >= n {
			err = usagef("view %s: --row %d: there are %s, which count from 0%s", f.name, f.row, plural(n, "row"), f.more)
		}
	case "longest", "shortest":
		r.start, err = s.Longest(f.shortest)
	case "random":
		seed := uint64(time.Now().UnixNano())
		if p := flags.Lookup("seed"); p.Changed {
			if seed, err = strconv.ParseUint(p.Value.String(), 10, 64); err != nil {
				return usagef("view: --seed %s: is not a whole number", p.Value)
			}
		}
		r.start = rand.New(rand.NewPCG(seed, 0)).Int64N(n)
	case "document":
		r.list, err = s.Document(f.document)
	case "source":
		var names []string
		r.list, names, err = s.Source(f.source)
		switch {
		case errors.Is(err, origins.ErrNone):
			err = fault.Errorf("view %s --source: its build did not record where documents came from; build it again", f.name)
		case err == nil && r.list.Len == 0:
			err = usagef("view %s: --source %s has no rows; there are %s%s", f.name, f.source, strings.Join(names, ", "), f.more)
		}
	}
	return err
}

// show shows the rows: on a page, as JSON, one after another, or with keys on a terminal.
func (f *viewFlags) show(cmd *cobra.Command, arg string, at *datasetFS, asked string) (err error) {
	f.name = cmp.Or(f.name, arg)
	setSoftLimit(viewMemory + at.buckets.MemoryBytes())
	var r found
	defer func() {
		for _, c := range slices.Backward(r.close) {
			err = errors.Join(err, c())
		}
	}()
	if err := f.find(cmd, arg, at, asked, &r); err != nil {
		return err
	}
	r.list.Pattern = f.pattern
	out, hasLimit := unguarded(cmd.OutOrStdout()), cmd.Flags().Changed("limit")
	p := rowPrinter{out: cmd.OutOrStdout(), asJSON: f.asJSON, screen: marked.Screen{Colour: colourful(out), Tokens: f.tokens}}
	limit := f.limit
	if !hasLimit && !f.given && asked != "document" && asked != "step" && f.grep == "" {
		limit = 1
	}
	keys, ok := cmd.InOrStdin().(*os.File)
	switch {
	case f.given:
		return printGiven(cmd, r.list)
	case f.html != "":
		err = f.writePage(cmd, &r, cmp.Or(limit, maxPageRows))
	case !f.asJSON && !hasLimit && isTerminal(out) && os.Getenv("TERM") != "dumb" && ok && term.IsTerminal(int(keys.Fd())):
		err = pageThrough(cmd.Context(), &r, p.screen, keys, out)
	default:
		err = p.printAll(cmd.Context(), r.list, r.start, limit)
	}
	if err == io.EOF {
		err = fault.Errorf("view %s: no row matches --grep %s%s", f.name, f.grep, f.more)
	}
	return err
}

// A rowPrinter prints rows for people or for programs.
type rowPrinter struct {
	out    io.Writer
	asJSON bool
	screen marked.Screen
	elided int // characters of a text for people, 0 for all
	n      int // rows that were printed
}

// printAll prints the rows of a list from one on, at most limit unless that is 0. The error is io.EOF if there is none.
func (p *rowPrinter) printAll(ctx context.Context, l *view.List, at, limit int64) error {
	return each(ctx, l, at, limit, p.screen.Tokens, p.print)
}

func (p *rowPrinter) print(row *view.Row) error {
	if p.asJSON {
		e := json.NewEncoder(p.out)
		e.SetEscapeHTML(false)
		return e.Encode(row)
	}
	if p.elided > 0 {
		row.Elide(p.elided)
	}
	text := strings.Join(slices.Concat([]string{oneLine(row.Title(p.screen)), ""}, row.Lines(p.screen)), "\n") + "\n"
	if p.n++; p.n > 1 {
		text = "\n" + text
	}
	_, err := io.WriteString(unguarded(p.out), text) // colours are ours, and what they surround is harmless
	return err
}

// each passes rows to visit. The error is io.EOF if there is none.
func each(ctx context.Context, l *view.List, at, limit int64, tokens bool, visit func(*view.Row) error) error {
	for n := int64(0); n < limit || limit == 0; n++ {
		row, i, err := l.Next(at, 1, tokens, ctx.Err)
		if err == io.EOF && n > 0 {
			return nil
		}
		if err == nil {
			err = visit(row)
		}
		if err != nil {
			return err
		}
		at = i + 1
	}
	return nil
}

// writePage writes the rows as a page.
func (f *viewFlags) writePage(cmd *cobra.Command, r *found, limit int64) error {
	n, rows := 0, strings.Builder{}
	err := each(cmd.Context(), r.list, r.start, limit, f.tokens, func(row *view.Row) error {
		n++
		rows.WriteString(string(row.HTML(f.tokens)))
		return nil
	})
	if err != nil {
		return err
	}
	page := markup.Page(f.name, viewStyle+marked.Style, markup.Format(viewPage, f.name, markup.HTML(rows.String())))
	if err := writePage(f.html, page); err != nil {
		return fmt.Errorf("view --html %s: %w", f.html, err)
	}
	return writeText(cmd.OutOrStdout(), fmt.Sprintf("wrote %s: %s\n", f.html, plural(n, "row")))
}

const (
	viewStyle = `:root{color-scheme:light dark}
body{margin:0;background:#fafaf8;color:#1c1f23;font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media(prefers-color-scheme:dark){body{background:#14171a;color:#e8eaec}}
main{max-width:1000px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:24px;line-height:1.25;font-weight:600;margin:0 0 8px;overflow-wrap:anywhere}
`
	viewPage = `<main><h1><bdi>%s</bdi></h1>
<p class="dsload-row"><span class="loss">coloured</span>: carries loss; <span class="special">framed</span>: a special token</p>
%s</main>
`
)

// readGiven reads the rows of a batch, a JSON line each.
func readGiven(stdin io.Reader) (rows []view.Given, err error) {
	for in := json.NewDecoder(stdin); err == nil; {
		var g view.Given
		if err = in.Decode(&g); err == nil {
			rows = append(rows, g)
		}
	}
	if err == io.EOF {
		return rows, nil
	}
	return nil, fault.Kindf(fault.Corrupt, "view --given: read a row of stdin: %w", err)
}

// printGiven prints the rows of a batch as {"html": …, "text": …}.
func printGiven(cmd *cobra.Command, l *view.List) error {
	var html, text strings.Builder
	html.WriteString("<style>" + marked.Style + "</style>")
	p := rowPrinter{out: &text}
	err := each(cmd.Context(), l, 0, 0, false, func(row *view.Row) error {
		html.WriteString(string(row.HTML(false)))
		return p.print(row)
	})
	if err != nil && err != io.EOF {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"html": html.String(), "text": text.String()})
}

// pageThrough shows rows on a terminal, and follows keys.
func pageThrough(ctx context.Context, r *found, screen marked.Screen, keys *os.File, out io.Writer) (err error) {
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
	p := view.Pager{List: r.list, Screen: screen, Out: out, Typed: typed, Resized: resized, Size: func() (int, int) {
		columns, lines, err := term.GetSize(int(keys.Fd()))
		if err != nil || columns < 1 || lines < 2 {
			return defaultColumns, defaultLines
		}
		return columns, lines
	}}
	return p.Run(ctx, r.start)
}

// defaultLines is the height of a terminal that does not report it.
const defaultLines = 24

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/dsload/dsload/internal/bench"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/textcache"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type buildFlags struct {
	opts      option.Options
	progress  string
	asJSON    bool
	explain   bool
	preview   int // documents of each input to show, in place of a build
	partition partitionFlags
	cached    bool
	stdinLife bool   // for programs that start a build of their own
	profile   string // a file for a CPU profile, for bench build
	http      string
	notify    []string
}

func newBuildCommand() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build [SOURCE...]",
		Short: "Stream sources through a tokenizer into a dataset folder",
		Long: `Streams sources through a tokenizer into a folder of Arrow shards, under a hard cap on
the whole process's memory. After an interruption of any kind the same command resumes
the build, which ends with the same bytes. A SOURCE is a path, a glob, a folder, an
address, "-" for standard input, or a generated corpus.

Other pages: 'dsload help sources' for addresses and which files of a folder are read,
'dsload help formats' for what a document is, 'dsload help templates' for pairs and
chats, 'dsload help filters' for which documents stay.

A build does not shuffle or mix: the order is that of the sources. Shuffling and mixing
happen while serving, where they can change without another build: see 'dsload help batches'.

With --append, SOURCEs are added to a finished dataset, with the settings of its build:
a flag that shapes rows may be left out, and is refused where it differs.
--max-examples and other budgets count what is added. The old dataset stays readable
until the addition is complete, and copies of held-out documents are dropped.`,
		Example: `  dsload build corpus/*.txt --eos --out data                # a document a line
  dsload build 'corpus/*.jsonl.gz' --text-field content --preview 3    # look first; writes nothing
  dsload build                                           # generated text, 30,000 examples
  dsload build wiki.train.txt --format wikitext --out data
  dsload build hf://datasets/Salesforce/wikitext --text-field text
  dsload build pages.jsonl --where lang=en --min-chars 200 --dedup near
  dsload build recipes.csv --format recipes --template recipe-seq2seq
  dsload build pairs.jsonl --prompt 'Q: {{ q }}\nA: ' --target '{{ a }}' --causal-pairs --eos
  dsload build chats.jsonl --format chat --tokenizer path/to/model
  dsload build more.jsonl --append --out data
  dsload build 'books/*.txt' --format document --pack wrapped --max-length 4096
  cat notes.txt | dsload build - --max-length 1024 --memory 64MiB`,
		Annotations: map[string]string{help.UsualFlags: "out tokenizer format text-field max-length pack eos " +
			"max-val-examples memory preview"},
		RunE: func(cmd *cobra.Command, args []string) error {
			stop, err := bench.Profile(f.profile)
			if err != nil {
				return err
			}
			return errors.Join(runBuild(cmd, args, &f), stop())
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// add adds all flags of build.
func (f *buildFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	addOption(flags, &f.opts, "out")
	flags.BoolVar(&f.cached, "cached", false,
		"build into the user's cache, unless it has the dataset of unchanged sources")
	flags.BoolVar(&f.stdinLife, "exit-with-stdin", false,
		"with --cached: end when standard input ends, for programs that start a build of their own")
	flags.StringVar(&f.profile, "cpu-profile", "", "write a CPU profile to `FILE`, for bench build --profile")
	flags.BoolVar(&f.opts.Discarded, "discarded", false, "the dataset is removed once it was read, for view")
	for _, name := range []string{"exit-with-stdin", "cpu-profile", "discarded"} {
		_ = flags.MarkHidden(name) // the flag exists
	}
	f.addRowFlags(flags)
	addOption(flags, &f.opts, "overwrite")
	f.partition.add(flags)
	flags.StringVar(&f.http, "http", "", "show a live page at `ADDR` of this machine, such as 127.0.0.1:8080")
	flags.StringArrayVar(&f.notify, "notify", nil,
		"send a message to `URL` (Discord, Slack, ntfy, or any that takes JSON) when done, failed or resumed; "+
			"@FILE or env:NAME keeps it secret (repeatable)")
	addOption(flags, &f.opts, "append")
	flags.StringVar(&f.progress, "progress", "auto", "auto, bar, json or none")
	flags.BoolVar(&f.asJSON, "json", false, "print the summary as one JSON object")
	flags.BoolVar(&f.explain, "explain-memory", false, "print how the memory cap is divided, and build nothing")
	flags.IntVar(&f.preview, "preview", 0, "show how the first N documents of each input would be read, cut and "+
		"tokenized, with an estimate, and write nothing")
	help.InGroup(flags, help.GroupOutput, "cached")
	help.InGroup(flags, help.GroupLive, "http", "notify", "preview")
	help.InGroup(flags, help.GroupLimits, "explain-memory")
}

// checkBuildFlags returns an error for values that mean the default in Options but are mistakes on
// the command line. It unsets --overflow where it was not given, since --pack sets its own.
func checkBuildFlags(cmd *cobra.Command, o *option.Options) error {
	for _, opt := range option.All() {
		if !cmd.Flags().Changed(opt.Name) {
			continue
		}
		if err := opt.Check(o); err != nil {
			return err
		}
	}
	if !cmd.Flags().Changed("overflow") {
		o.Overflow = ""
	}
	for _, name := range []string{"eos", "bos"} {
		switch f := cmd.Flags().Lookup(name); {
		case f.Changed && f.Value.String() == "":
			return usagef("--%s=: name a token, or give --%s without a value for the tokenizer's own", name, name)
		case !f.Changed || f.Value.String() != option.OwnToken:
			continue
		}
		// An argument may be meant as the token, which is taken only after an equals sign.
		for _, arg := range cmd.Flags().Args() {
			if arg == "-" || strings.ContainsAny(arg, "*?[") || strings.Contains(arg, "://") {
				continue
			}
			if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
				return usagef("build: read %s: no such file or directory; if it is the token of --%s, write --%s=%s",
					arg, name, name, shell.Quote(arg))
			}
		}
	}
	return nil
}

func runBuild(cmd *cobra.Command, args []string, f *buildFlags) error {
	stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	o := f.opts
	o.Sources, o.Stdin, o.Given = args, cmd.InOrStdin(), []string{}
	cmd.Flags().Visit(func(flag *pflag.Flag) { o.Given = append(o.Given, flag.Name) })
	if err := checkBuildFlags(cmd, &o); err != nil {
		return err
	}
	if cmd.Flags().Changed("preview") && (f.partition.given(cmd) || f.cached) {
		return usagef("build: --preview looks at sources; leave --plan, --partition and --cached out")
	}
	if f.partition.given(cmd) {
		if err := f.partition.apply(cmd, args, &o); err != nil {
			return err
		}
		args = o.Sources
	}
	if len(args) == 0 && !o.Append && !cmd.Flags().Changed("max-examples") {
		o.MaxExamples = option.DefaultMaxExamples
	}
	restore, err := prepareProcess(&o)
	if err != nil {
		return err
	}
	defer restore()
	if f.http != "" {
		o.ExtraBytes += pageBytes
	}
	if f.explain && !cmd.Flags().Changed("preview") {
		plan, err := ingest.PartitionMemory(o, f.partition.of)
		if err != nil {
			return err
		}
		return printMemory(stdout, plan, f.asJSON)
	}
	if len(args) == 0 && !o.Append && f.progress != "none" || len(args) == 0 && !cmd.Flags().Changed("progress") {
		fmt.Fprintf(stderr, "no source given: building from %s (- reads standard input)\n", option.DefaultSource)
	}
	if cmd.Flags().Changed("preview") {
		o.Notice = notices(f.progress, stderr)
		return f.runPreview(cmd, o)
	}
	if f.cached {
		return f.buildCached(cmd, o)
	}
	return f.build(cmd, o)
}

// buildCached builds into the cache, unless it already has the dataset.
func (f *buildFlags) buildCached(cmd *cobra.Command, o option.Options) error {
	if f.stdinLife {
		ctx, owned := context.WithCancel(cmd.Context())
		defer endWithOwner(cmd.InOrStdin(), owned)()
		cmd.SetContext(ctx)
	}
	if err := checkCached(cmd, &o); err != nil {
		return err
	}
	say := func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), oneLine(line)) }
	ready, err := textcache.Build(cmd.Context(), o, say, func(o option.Options) error { return f.build(cmd, o) })
	if err != nil || ready == nil {
		return err
	}
	summaryForPeople(ready)
	return f.report(cmd, ready)
}

// checkCached returns an error for arguments and flags that build --cached cannot use.
func checkCached(cmd *cobra.Command, o *option.Options) error {
	switch {
	case len(o.Sources) == 0:
		return usagef("build --cached: give at least one SOURCE")
	case cmd.Flags().Changed("out"):
		return usagef("build --cached --out %s: the cache chooses the folder; leave one of them out", o.Out)
	case o.Overwrite:
		return usagef("build --cached --overwrite: a cached dataset is built again only where its sources changed; " +
			"remove its folder to force that")
	}
	return nil
}

// build runs a build and reports what it did.
func (f *buildFlags) build(cmd *cobra.Command, o option.Options) error {
	stderr := cmd.ErrOrStderr()
	show, err := newProgress(f.progress, stderr)
	if err != nil {
		return err
	}
	o.Progress, o.Notice = show.update, notices(f.progress, stderr)
	notifier, err := newNotifier(f.notify, &o, stderr)
	if err != nil {
		return err
	}
	defer notifier.Close(notifyGrace)
	page, err := f.openPage(&o, stderr)
	if err != nil {
		return err
	}
	before := resident.Peak()
	summary, err := runBuildWithPage(cmd.Context(), o, f.partition.of, page)
	show.finish()
	notifyDone(notifier, o.Out, summary, err)
	if err != nil {
		return err
	}
	return errors.Join(f.report(cmd, summary), overCap(summary, before))
}

// notices returns a function that shows the build's messages.
func notices(progress string, stderr io.Writer) func(fault.Text) {
	switch progress {
	case "none":
		return nil
	case "json":
		enc := json.NewEncoder(stderr)
		return func(text fault.Text) {
			// a reader that is gone does not end the build
			_ = enc.Encode(map[string]string{"notice": text.In(flagName)})
		}
	}
	return func(text fault.Text) { fmt.Fprintln(stderr, oneLine(text.In(flagName))) }
}

// freshBytes is the maximum memory of a process before its build begins. A process that took more
// did other work, which does not count against the cap.
const freshBytes = 64 << 20

// overCap returns the error for a build whose process exceeded its cap. before is the peak when the
// build began.
func overCap(s *report.Summary, before int64) error {
	if s.AlreadyBuilt || s.PeakRSSBytes <= s.CapBytes || before > freshBytes || raceDetector {
		return nil
	}
	return fault.Kindf(fault.Limit, "build %s: the dataset is complete, but the process took %s of memory "+
		"where --memory allows %s; raise --memory, and report this: no build should pass its cap",
		s.Out, formatSize(s.PeakRSSBytes), formatSize(s.CapBytes))
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dsload/dsload/internal/bench"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: tokenizing, building, feeding",
		Long: `Measures dsload on this machine, each part as CPU-seconds and peak memory of whole
processes. Machines are noisy: compare ratios of runs made together, best of several.`,
		Example: `  dsload bench tokenize corpus.txt --workers 1
  dsload bench build corpus.txt --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchTokenizeCommand(), newBenchBuildCommand(), newBenchFeedCommand())
	return cmd
}

// documentRuns lists the values of --documents.
var documentRuns = []string{"runs", "lines"}

func newBenchTokenizeCommand() *cobra.Command {
	o := bench.TokenizeOptions{CacheBytes: tokenize.DefaultCacheBytes}
	var tokenizer tokenizerFlags
	var documents string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tokenize FILE...",
		Short: "Measure tokenizing: text per CPU-second, cold and warm, allocations, memory",
		Long: `Reads the files into memory and encodes them several times: each round first with fresh
encoders, whose caches hold the vocabulary (cold), then again with the same ones (warm). The best cold round counts.
Documents are runs of whole lines of at least 2 KiB; ids go to a reused buffer.`,
		Example: "  dsload bench tokenize corpus.txt\n" +
			"  dsload bench tokenize corpus.txt --tokenizer tokenizer.json --workers 1 --json",
		Args: someArgs("at least one file"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if o.Rounds < 1 {
				return usagef("--rounds %d: must be at least 1", o.Rounds)
			}
			if cmd.Flags().Changed("workers") && o.Workers < 1 {
				return usagef("--workers %d: must be at least 1", o.Workers)
			}
			if o.Lines = documents == "lines"; !o.Lines && documents != "runs" {
				return usagef("--documents %s: %s", documents, spelling.OneOf(documents, documentRuns))
			}
			o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
			return runBenchTokenize(cmd, &tokenizer, paths, o, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	tokenizer.add(cmd)
	flags.IntVar(&o.Workers, "workers", 0, "concurrent encoders (default the CPU quota)")
	flags.IntVar(&o.Rounds, "rounds", 7, "cold rounds, of which the best counts")
	flags.StringVar(&documents, "documents", "runs", "runs (of whole lines, 2 KiB or more) or lines")
	flags.Var(sizeValue{&o.CacheBytes, false}, "cache", "size of each encoder's cache")
	flags.Var(sizeValue{&o.Memory, false}, "memory",
		"limit on memory for text, tokenizer and encoders (default half of the control group's or machine's)")
	help.InGroup(flags, help.GroupMeasurement, "rounds", "documents")
	help.InGroup(flags, help.GroupLimits, "cache")
	return cmd
}

func runBenchTokenize(cmd *cobra.Command, tokenizer *tokenizerFlags, paths []string, o bench.TokenizeOptions,
	asJSON bool) error {
	start := time.Now()
	t, err := openTokenizer(tokenizer, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	loaded := time.Since(start)
	figures, err := bench.Tokenize(cmd.Context(), t, paths, o)
	if err != nil {
		return err
	}
	figures.LoadMillis, figures.Tokenizer = float64(loaded.Microseconds())/1000, tokenizer.name
	return printResult(cmd.OutOrStdout(), asJSON, figures, fmt.Sprintf("cold %.1f MB per CPU-second, %.1f MB/s, %s tokens/s; "+
		"warm %.1f MB per CPU-second, %.2f allocations a document; peak memory %s (best of %d, %s)\n",
		figures.MBPerCPUSecond, figures.MBPerSecond, formatCount(int64(figures.TokensPerSec)), figures.WarmMBPerCPU,
		figures.AllocsPerDoc, formatSize(figures.PeakRSSBytes), o.Rounds, plural(o.Workers, "worker")))
}

func newBenchBuildCommand() *cobra.Command {
	var o bench.BuildOptions
	var build buildFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "build SOURCE...",
		Short: "Measure whole builds: text per CPU-second, tokens per second, peak memory",
		Long: `Builds the sources into a temporary folder, each round in a process of its own, with the
options of build, and
prints the round with the most text per CPU-second. CPU time (user and system) and peak
resident memory are the kernel's figures for the whole process, start-up included.

With --profile it also prints how the CPU time divides among the stages of a build: start,
reading and framing the sources, formatting records as text, tokenizing it, cutting ids into
rows, writing shards, all checksums, and the rest, such as the collection of garbage. For each
stage it prints how fast a build would be with that stage alone. Then it prints the CPU time
of each goroutine that is alone at what it does, such as the reader: the largest of them
bounds the speed of a build on any number of cores. The shares come from samples, 100 a
second: for a build of one second they are accurate to a few percent.`,
		Example: "  dsload bench build corpus.txt --json\n" +
			"  dsload bench build 'synth://wikitext?seed=1' --max-bytes 1GB --memory 64MiB",
		Annotations: map[string]string{help.UsualFlags: "rounds profile tokenizer format pack max-bytes memory workers"},
		Args:        someArgs("at least one source"),
		RunE: func(cmd *cobra.Command, sources []string) error {
			if o.Rounds < 1 {
				return usagef("--rounds %d: must be at least 1", o.Rounds)
			}
			o.Stdin, o.Stderr = cmd.InOrStdin(), cmd.ErrOrStderr()
			o.Options = givenOptions(cmd.Flags())
			o.Tokenizer, o.Memory, o.Workers = build.opts.Tokenizer, build.opts.Memory, build.opts.Workers
			best, err := bench.Build(cmd.Context(), sources, o)
			if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() > 0 {
				return &printedError{exit.ExitCode()}
			}
			if err != nil {
				return err
			}
			return printResult(cmd.OutOrStdout(), asJSON, best, describeBuilt(best))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	flags.IntVar(&o.Rounds, "rounds", 3, "builds to measure")
	flags.BoolVar(&o.Profile, "profile", false, "print the CPU time of each stage, and of what is alone at its work")
	build.addRowFlags(flags)
	help.InGroup(flags, help.GroupMeasurement, "rounds", "profile")
	return cmd
}

// describeBuilt formats the figures of the best build, and where it spent its CPU time if that was measured.
func describeBuilt(f *bench.BuildFigures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.1f MB of text per CPU-second, %.1f MB/s, %s tokens/s, peak memory %s (best of %d)\n",
		f.MBPerCPUSecond, f.MBPerSecond, formatCount(int64(f.TokensPerSec)), formatSize(f.PeakRSSBytes), f.Rounds)
	if f.Stages == nil {
		return b.String()
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nstage\tCPU s\tshare\tMB per CPU-second\t\n")
	for _, s := range f.Stages {
		rate := "-"
		if s.CPUSeconds > 0 {
			rate = fmt.Sprintf("%.0f", s.MBPerCPUSecond)
		}
		fmt.Fprintf(t, "%s\t%.3f\t%.0f%%\t%s\t\n", s.Stage, s.CPUSeconds, 100*s.CPUSeconds/max(f.CPUSeconds, 1e-9),
			rate)
	}
	fmt.Fprintf(t, "all\t%.3f\t100%%\t%.0f\t\n", f.CPUSeconds, f.MBPerCPUSecond)
	fmt.Fprintf(t, "\nalone\tCPU s\tCPU s a GB\tMB/s at most\t\n")
	for _, a := range f.Alone {
		rate := "-"
		if a.SecondsPerGB > 0 {
			rate = fmt.Sprintf("%.0f", 1000/a.SecondsPerGB)
		}
		fmt.Fprintf(t, "%s\t%.3f\t%.2f\t%s\t\n", a.Goroutine, a.CPUSeconds, a.SecondsPerGB, rate)
	}
	t.Flush() // a Builder takes everything
	fmt.Fprintf(&b, "at most %.0f MB/s on any number of cores\n(shares of %s samples in all rounds)\n", f.BoundMBPerSecond, formatCount(f.Samples))
	return b.String()
}

func newBenchFeedCommand() *cobra.Command {
	o := bench.FeedOptions{Rows: 1_000_000, Tokens: 20, Memory: serve.DefaultMemory}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "feed",
		Short: "Measure the feed: server CPU per sample, bytes per second, time to the first batch",
		Long: `Serves a dataset, given or generated, from its own process to one client that reads and
discards, and prints the cost. It also times opening a stream at the first row, in the
middle and near the end.`,
		Example: `  dsload bench feed --json
  dsload bench feed --rows 10e6 --tokens 20
  dsload bench feed --tokens 512 --batch-size 256 --rows 100e3
  dsload bench feed --dataset data --query 'bucket=4096'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Rows < 1 || o.Tokens < 1 || o.BatchSize < 1 {
				return usagef("--rows, --tokens and --batch-size must be at least 1")
			}
			if o.For <= 0 {
				return usagef("bench feed: --for %v: must be above 0, as in 5s", o.For)
			}
			if f := cmd.Flags(); o.Dataset != "" && (f.Changed("rows") || f.Changed("tokens")) {
				return usagef("bench feed: --rows and --tokens are of a made-up dataset, and --dataset names one; " +
					"leave them out, or --dataset")
			}
			o.Stderr = cmd.ErrOrStderr()
			figures, err := bench.Feed(cmd.Context(), o)
			if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() > 0 {
				return &printedError{ended.ExitCode()} // the server has said why
			}
			if err != nil {
				return err
			}
			return printResult(cmd.OutOrStdout(), asJSON, figures, fmt.Sprintf("%.2f µs of server CPU a sample, %.0f MB/s, %s tokens/s, "+
				"padding efficiency %.3f, peak memory %s, first batch in %.1f, %.1f and %.1f ms (first row, middle, end)\n",
				figures.ServerMicros, figures.MBPerSecond, formatCount(int64(figures.TokensPerSec)),
				figures.PaddingEfficiency, formatSize(figures.PeakRSSBytes),
				figures.FirstBatchMillis[0], figures.FirstBatchMillis[1], figures.FirstBatchMillis[2]))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	flags.StringVar(&o.Dataset, "dataset", "", "measure this dataset instead of a made-up one")
	flags.Var(sizeValue{&o.Rows, true}, "rows", "rows of the made-up dataset")
	flags.Var(sizeValue{&o.Tokens, true}, "tokens", "tokens of each of its rows")
	flags.IntVar(&o.BatchSize, "batch-size", 32, "rows a batch")
	flags.StringVar(&o.Query, "query", "", "more parameters of /v1/batches, as name=value&name=value")
	flags.DurationVar(&o.For, "for", 5*time.Second, "how long to read")
	flags.Var(sizeValue{&o.Memory, false}, "memory", "the server's --memory")
	help.NameValues(flags, "DATASET", "dataset")
	help.NameValues(flags, "QUERY", "query")
	help.InGroup(flags, help.GroupMeasurement, "dataset", "rows", "tokens", "batch-size", "query", "for")
	return cmd
}

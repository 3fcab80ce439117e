package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/plan"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shell"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newPlanCommand() *cobra.Command {
	var f buildFlags
	var partitions int
	var out string
	cmd := &cobra.Command{
		Use:   "plan --partitions N [build flags] SOURCE...",
		Short: "Cut a build into partitions that other machines build",
		Long: `Reads the sources once, without tokenizing them, and writes a plan: where each
of N partitions begins, with which document, and the state that depends on earlier
documents. Each partition is then built anywhere with 'dsload build --plan', into the same folder, and
'dsload merge' writes the manifest. The dataset has the rows of the single build, in its order.

Plain text, WikiText, JSON lines and CSV are cut between records, parquet and Arrow files
between groups of rows; compressed files and archives stay whole.
Partitions have about the same size in bytes. The plan holds the flags of the build.
Sources, the tokenizer and files named by flags must have the same content and paths
wherever a partition is built.`,
		Example: `  dsload plan --partitions 16 --out plan.json --max-length 1024 'corpus/*.jsonl'
  dsload build --plan plan.json --partition 0/16 --out data    # and 1/16 … 15/16, anywhere
  dsload merge data
  dsload plan -n 16 --out s3://bucket/plan.json 's3://bucket/corpus/**'    # all in a bucket
  dsload build --plan s3://bucket/plan.json --partition 0/16 --out s3://bucket/data
  dsload merge s3://bucket/data`,
		Annotations: map[string]string{help.UsualFlags: "partitions out tokenizer format text-field max-length pack eos " +
			"max-val-examples memory"},
		Args: someArgs("one or more sources"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPlan(cmd, args, &f, partitions, out)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&partitions, "partitions", "n", 0, "number of partitions")
	flags.StringVarP(&out, "out", "o", "plan.json", "file of the plan, or address of s3://, gs:// or az://")
	f.addRowFlags(flags)
	flags.BoolVar(&f.explain, "explain-memory", false, "print how the memory cap is divided, and read nothing")
	flags.StringVar(&f.progress, "progress", "auto", "auto, bar, json or none")
	flags.BoolVar(&f.asJSON, "json", false, "print a summary as one JSON object")
	help.NameValues(flags, "FILE", "out")
	help.InGroup(flags, "Plan", "partitions", "out")
	help.InGroup(flags, help.GroupLimits, "explain-memory")
	return cmd
}

func runPlan(cmd *cobra.Command, args []string, f *buildFlags, partitions int, out string) error {
	o := f.opts
	o.Sources = args
	if err := checkBuildFlags(cmd, &o); err != nil {
		return err
	}
	if partitions == 0 {
		return usagef("plan: give the number of partitions as --partitions N; see 'dsload plan -h'")
	}
	if err := checkPlanFile(out); err != nil {
		return err
	}
	restore, err := prepareProcess(&o)
	if err != nil {
		return err
	}
	defer restore()
	show, err := newProgress(f.progress, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.explain {
		plan, err := ingest.PlanningMemory(o, partitions)
		if err != nil {
			return err
		}
		return printMemory(cmd.OutOrStdout(), plan, f.asJSON)
	}
	o.Progress, o.Notice = show.update, notices(f.progress, cmd.ErrOrStderr())
	p, err := ingest.MakePlan(cmd.Context(), o, partitions)
	show.finish()
	if err != nil {
		return err
	}
	if err := p.Write(cmd.Context(), out); err != nil {
		return advice.Of(advice.Folder, advice.Facts{Options: &o}, err)
	}
	return printPlanned(cmd.OutOrStdout(), p, out, f.asJSON)
}

// checkPlanFile returns an error unless a plan can be written to out. It replaces an earlier plan, and never a
// file of another kind, such as one of the sources.
func checkPlanFile(out string) error {
	if err := remote.CheckSigned(out); err != nil {
		return usagef("plan: --out: %v", err)
	}
	info, err := os.Stat(out)
	switch {
	case remote.Writable(out):
		return nil
	case err == nil && info.IsDir():
		return usagef("plan: --out %s: it is a folder; name a file for the plan, such as %s", out,
			filepath.Join(out, "plan.json"))
	case err == nil && !info.Mode().IsRegular(): // it would be replaced, not written to
		return usagef("plan: --out %s: is not a regular file; name a file to write", out)
	}
	if err == nil && info.Size() > 0 {
		if plan, err := plan.IsPlan(out); err != nil || !plan {
			return usagef("plan: --out %s: exists already and is not a plan; name another file, or remove this one", out)
		}
	}
	if err := checkWritable(out); err != nil {
		return usagef("plan: --out %s: %v", out, err)
	}
	return nil
}

func printPlanned(stdout io.Writer, p *plan.Plan, out string, asJSON bool) error {
	var documents, inputs, largest int64
	empty := 0
	for _, phase := range p.Phases {
		documents += phase.Documents
		inputs += int64(len(phase.Inputs))
	}
	least := int64(math.MaxInt64)
	for i := range p.Parts {
		n := p.Parts[i].TextBytes
		if largest, least = max(largest, n), min(least, n); n == 0 {
			empty++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s, %s; partitions of %s to %s of text\n", out, plural(p.Partitions, "partition"),
		plural(inputs, "input"), plural(documents, "document"), formatSize(least), formatSize(largest))
	if empty > 0 {
		fmt.Fprintf(&b, "note: partitions without text: %d; fewer --partitions suffice\n", empty)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "note: %s\n", note.In(flagName))
	}
	fmt.Fprintf(&b, "build each of 0/%d to %d/%d, on any machines, into one folder; then dsload merge joins them\n", p.Partitions,
		p.Partitions-1, p.Partitions)
	fmt.Fprintf(&b, "next: dsload build --plan %s --partition 0/%d --out parts\n", shell.Quote(out), p.Partitions)
	return printResult(stdout, asJSON, map[string]any{"plan": out, "partitions": p.Partitions, "inputs": inputs,
		"documents": documents, "largest_bytes": largest, "smallest_bytes": least, "seal": p.Seal()}, b.String())
}

// partitionFlags are the flags of build for one partition of a plan.
type partitionFlags struct {
	plan, partition string
	of              *plan.Chosen // set by apply
}

func (f *partitionFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.plan, "plan", "", "build only one partition of this plan, see 'dsload plan -h'")
	flags.StringVar(&f.partition, "partition", "", "which partition of the plan, as `I/N` with I from 0 to N-1")
	help.NameValues(flags, "FILE", "plan")
	help.InGroup(flags, help.GroupPartitions, "plan", "partition")
}

func (f *partitionFlags) given(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("plan") || cmd.Flags().Changed("partition")
}

// apply replaces the options with those of the plan.
func (f *partitionFlags) apply(cmd *cobra.Command, args []string, o *option.Options) error {
	if f.plan == "" || f.partition == "" {
		return usagef("build: --plan FILE and --partition I/N go together; see 'dsload plan -h'")
	}
	if len(args) > 0 {
		return usagef("build: --plan names the sources; leave %s out, or make another plan",
			oneLine(uris.Redact(args[0])))
	}
	// Only where and how a partition is built may be given; all else comes from the plan.
	may := []string{"out", "overwrite", "plan", "partition", "progress", "json", "explain-memory", "http", "notify"}
	var err error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		opt, _ := option.Named(flag.Name)
		if err == nil && opt.Group != option.GroupLimits && !slices.Contains(may, flag.Name) {
			err = usagef("build: --%s is part of the plan; leave it out, or make another plan with it", flag.Name)
		}
	})
	if err != nil {
		return err
	}
	// Of the plan only what concerns the partition is read.
	wanted, _, _ := strings.Cut(f.partition, "/")
	asked, err := strconv.Atoi(wanted)
	if err != nil || asked < 0 {
		asked = -1 // the error below says how many partitions there are
	}
	plan, err := plan.Open(f.plan, asked)
	if err != nil {
		return err
	}
	number, err := parsePartition(f.partition, plan.Partitions)
	if err != nil {
		return err
	}
	given := *o
	if f.of, err = plan.Partition(number); err != nil {
		return err
	}
	*o = f.of.Options()
	o.Out, o.Memory, o.Workers, o.Overwrite, o.Stdin = given.Out, given.Memory, given.Workers, given.Overwrite,
		given.Stdin
	if cmd.Flags().Changed("checkpoint-every") {
		o.CheckpointEvery = given.CheckpointEvery
	}
	return f.chdir(plan.Folder, o)
}

// chdir changes to the folder where the plan was made, so that its relative names mean the same.
func (f *partitionFlags) chdir(folder string, o *option.Options) error {
	here, err := os.Getwd()
	if err != nil || folder == "" || folder == here {
		return err
	}
	if !remote.Writable(o.Out) {
		if o.Out, err = filepath.Abs(o.Out); err != nil {
			return err
		}
	}
	if err := os.Chdir(folder); err != nil {
		return usagef("build: the plan names sources relative to %s, which is not here; "+
			"make the plan with absolute paths", folder)
	}
	return nil
}

// parsePartition reads I/N and compares N with the plan.
func parsePartition(text string, partitions int) (int, error) {
	before, after, found := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(before)
	n, err2 := strconv.Atoi(after)
	switch {
	case !found || err1 != nil || err2 != nil:
		return 0, usagef("--partition %s: write it as I/N, such as 0/%d", text, partitions)
	case n != partitions:
		return 0, usagef("--partition %s: the plan has %s, not %d", text, plural(partitions, "partition"), n)
	case i < 0 || i >= n:
		return 0, usagef("--partition %s: partitions are numbered from 0 to %d", text, n-1)
	}
	return i, nil
}

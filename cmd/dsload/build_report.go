package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/visible"
	"github.com/dsload/dsload/stats"
	"github.com/spf13/cobra"
)

func (f *buildFlags) report(cmd *cobra.Command, s *report.Summary) error {
	for _, w := range s.Warnings {
		warn(cmd.ErrOrStderr(), w.String())
	}
	return printResult(cmd.OutOrStdout(), f.asJSON, s, describe(s)+f.next(s))
}

// next returns the lines to paste after a build.
func (f *buildFlags) next(s *report.Summary) string {
	part := f.partition.of
	switch {
	case part == nil, s.AlreadyBuilt && len(s.Splits) == 0: // merged
		return nextOf(s.Out)
	case part.Number+1 < part.Plan.Partitions:
		return fmt.Sprintf("next: dsload build --plan %s --partition %d/%d --out %s\n", shell.Quote(f.partition.plan),
			part.Number+1, part.Plan.Partitions, shell.Quote(s.Out))
	}
	others := ""
	if part.Number > 0 {
		others = fmt.Sprintf("  # when the other %d are built, too", part.Plan.Partitions-1)
	}
	return fmt.Sprintf("next: dsload merge %s%s\n", shell.Path(s.Out), others)
}

// nextOf returns the lines to paste where there is a dataset.
func nextOf(dir string) string {
	return fmt.Sprintf("next: dsload view %s\n      dsload.Loader(%s, batch_size=32)\n", shell.Path(dir), strconv.QuoteToASCII(dir))
}

func printMemory(w io.Writer, plan *setup.MemoryPlan, asJSON bool) error {
	var b strings.Builder
	for _, p := range plan.Shares {
		fmt.Fprintf(&b, "%10s  %-18s %s\n", formatSize(p.Bytes), p.Name, p.Why)
	}
	fmt.Fprintf(&b, "%10s  %-18s\n", formatSize(plan.Sum), "sum")
	fmt.Fprintf(&b, "%10s  %-18s the smallest that works for these settings is %s\n", formatSize(plan.Cap), "cap",
		formatSize(plan.Smallest))
	return printResult(w, asJSON, plan, b.String())
}

// describe formats a summary: what was built, what stopped it, what was left out.
func describe(s *report.Summary) string {
	var b strings.Builder
	if s.Partition != "" {
		fmt.Fprintf(&b, "partition %s\n", s.Partition)
	}
	describeSplits(&b, s.Splits)
	if s.AlreadyBuilt && s.Partition != "" {
		fmt.Fprintf(&b, "already built: %s: %s\n", s.Out, s.Stopped)
		return b.String()
	}
	if p := s.Packing; p != nil {
		b.WriteString(describePacking(p))
		for i, split := range s.Splits {
			fmt.Fprintf(&b, "%s %s %.2f%%", []string{"; fill of", ","}[min(i, 1)], split.Name, 100*split.Fill)
		}
		b.WriteByte('\n')
	}
	label, left := "read", s.Documents
	if s.Added > 0 && !s.AlreadyBuilt { // the splits are those of the whole dataset
		label = "read for the addition"
	}
	for _, dropped := range s.DroppedBy {
		left -= dropped
	}
	fmt.Fprintf(&b, "%s: %s", label, plural(s.Documents, "document"))
	if left < s.Documents {
		fmt.Fprintf(&b, "; kept: %s", plural(left, "document"))
	}
	fmt.Fprintf(&b, ", %s of text", formatSize(s.TextBytes))
	for _, lost := range losses(s.Rejected, s.Dropped) {
		b.WriteString(", " + lost)
	}
	b.WriteByte('\n')
	if s.Replaced > 0 {
		fmt.Fprintf(&b, "text: %s replaced by U+FFFD\n", plural(s.Replaced, "ill-formed UTF-8 sequence"))
	}
	if len(s.Formats) > 0 {
		fmt.Fprintf(&b, "format: %s\n", formats(s.Formats))
	}
	if s.DocumentEnd != "" {
		fmt.Fprintf(&b, "each document ends with %s\n", visible.Text(s.DocumentEnd))
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if s.AlreadyBuilt {
		fmt.Fprintf(&b, "already built: %s\n", s.Out)
		return b.String()
	}
	if s.Resumed {
		fmt.Fprintf(&b, "resumed at example %s\n", formatCount(s.ResumedAt))
	}
	fmt.Fprintf(&b, "wrote %s in %.1f s (%.1f MB of text/s, %s tokens/s), peak memory %s of %s\n", s.Out, s.Seconds,
		s.MBPerSecond, formatCount(int64(s.TokensPerSecond)), formatSize(s.PeakRSSBytes), formatSize(s.CapBytes))
	fmt.Fprintf(&b, "stopped: %s\n", s.Stopped)
	return b.String()
}

// describeSplits writes how much the splits hold, and what each source gave.
func describeSplits(b *strings.Builder, splits []report.SplitSummary) {
	for _, s := range splits {
		fmt.Fprintf(b, "%s: %s, %s in %s, %s\n", s.Name, plural(s.Examples, "example"), plural(s.Tokens, "token"),
			plural(s.Shards, "shard"), lossOn(s.LossTokens, s.LossShare))
		b.WriteString(stats.SourceText(s.Sources, sourcesListed))
	}
}

// sourcesListed is how many sources of a split are listed.
const sourcesListed = 8

// lossOn returns how many tokens of a split carry loss.
func lossOn(tokens *int64, share *float64) string {
	switch {
	case tokens == nil:
		return "tokens with loss not recorded"
	case *share == 1:
		return "loss on all (100%)"
	}
	return fmt.Sprintf("loss on %s (%.1f%%)", plural(*tokens, "token"), 100**share)
}

// losses returns what the summary says of records and documents that were left out as bad, or as too long.
func losses(rejected, dropped int64) (lost []string) {
	if rejected > 0 {
		lost = append(lost, plural(rejected, "bad record")+" skipped (see rejects.jsonl)")
	}
	if dropped > 0 {
		lost = append(lost, plural(dropped, "document")+" longer than --max-length dropped")
	}
	return lost
}

// describePacking formats how rows were packed.
func describePacking(p *report.PackSummary) string {
	return fmt.Sprintf("packed: %s, rows of %s tokens, %s dropped", p.Policy, formatCount(int64(p.Length)),
		plural(p.DroppedTokens, "token"))
}

// formats lists the formats of the inputs, each with its count if they differ.
func formats(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	if len(names) == 1 {
		return names[0]
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s)", name, plural(counts[name], "input"))
	}
	return strings.Join(names, ", ")
}

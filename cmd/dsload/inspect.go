package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/stats"
	"github.com/spf13/cobra"
)

// inspection is the result of inspect.
type inspection struct {
	Dataset   string              `json:"dataset"`
	Version   int                 `json:"format_version"`
	Tokenizer shard.TokenizerInfo `json:"tokenizer"`
	Settings  json.RawMessage     `json:"settings"`
	Sources   []shard.SourceInfo  `json:"sources"`
	Counters  map[string]int64    `json:"counters"`
	Dropped   map[string]int64    `json:"dropped,omitempty"` // documents left out by filters, by the option
	CutBy     []string            `json:"cut_by,omitempty"`  // options whose budgets left out part of the sources
	cut       string              // CutBy as a sentence
	Adding    bool                `json:"unfinished_addition,omitempty"`
	losses    []string            // what else was cut off or left out
	Packing   *report.PackSummary `json:"packing,omitempty"`
	Splits    []inspectedSplit    `json:"splits"`
}

type inspectedSplit struct {
	Name     string               `json:"name"`
	Examples int64                `json:"examples"`
	Tokens   int64                `json:"tokens"`
	Labels   int64                `json:"label_tokens,omitempty"`
	Loss     *int64               `json:"loss_tokens"` // tokens that carry loss; null if that is not recorded
	Share    *float64             `json:"loss_share"`
	Shards   int                  `json:"shards"`
	Bytes    int64                `json:"bytes"`
	Fill     float64              `json:"fill,omitempty"` // share of packed rows that holds tokens
	Lengths  lengthStatistics     `json:"lengths"`
	Sources  []shard.SourceCounts `json:"sources,omitempty"` // in the order of their documents
	Samples  []sample             `json:"samples"`

	histogram [][3]int64 // see the manifest
}

// lengthStatistics are in tokens. Quantiles are upper bounds of histogram buckets.
type lengthStatistics struct {
	Min  int64   `json:"min"`
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P95  int64   `json:"p95"`
	Max  int64   `json:"max"`
}

// sample is a decoded example. Texts include special tokens; they are empty if the tokenizer is
// missing.
type sample struct {
	Row      int64    `json:"row"`
	Document int64    `json:"document"`
	Part     int32    `json:"part"`
	InputIDs []uint32 `json:"input_ids"`
	Labels   []uint32 `json:"labels,omitempty"`
	Text     string   `json:"text,omitempty"`
	LossMask []bool   `json:"loss_mask,omitempty"`
	Target   string   `json:"target,omitempty"` // the labels, or the tokens that loss_mask trains on
	masked   []uint32 // these tokens
}

func newInspectCommand() *cobra.Command {
	var asJSON bool
	examples := 3
	cmd := &cobra.Command{
		Use:   "inspect DATASET",
		Short: "Show what is in a dataset: splits, counts, lengths, a few decoded examples",
		Long: `Shows what is in a dataset: where it came from, what was dropped, splits,
counts, lengths, and a few decoded examples. For an unfinished build it shows the
progress. A DATASET is a folder on this machine or in a bucket: s3://BUCKET/PATH,
gs:// or az://.`,
		Example: `  dsload inspect dsload-data
  dsload inspect dsload-data --examples 10
  dsload inspect s3://bucket/data
  dsload inspect dsload-data --json | jq .splits[0].lengths`,
		Args: folders(oneArg("one dataset")),
		RunE: onDatasets(store.ReaderOptions{}, func(cmd *cobra.Command, args []string, at *datasetFS) error {
			if examples < 0 {
				return usagef("--examples %d: must be at least 0", examples)
			}
			seen, err := inspect(at, args[0], examples, cmd.ErrOrStderr())
			if errors.Is(err, shard.ErrNotFound) {
				if u, unfinishedErr := ingest.ReadUnfinished(at, args[0]); unfinishedErr == nil {
					return printUnfinished(cmd.OutOrStdout(), args[0], u, asJSON)
				} else if !errors.Is(unfinishedErr, shard.ErrNotFound) {
					return unfinishedErr
				}
			}
			if err != nil {
				return err
			}
			return printResult(cmd.OutOrStdout(), asJSON, seen, seen.text(terminalWidth(cmd.OutOrStdout())()))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().IntVarP(&examples, "examples", "n", examples, "examples of each split to decode, spread over it")
	return cmd
}

func inspect(fsys shardfile.ReadFS, dir string, examples int, stderr io.Writer) (_ *inspection, err error) {
	d, err := shard.OpenFS(fsys, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	m := d.Manifest()
	out := &inspection{Dataset: dir, Version: m.Version, Tokenizer: m.Tokenizer, Settings: m.Settings,
		Sources: m.Sources, Counters: m.Counters, Dropped: m.Dropped, CutBy: counts.Of(m.Counters, nil).CutBy,
		cut: report.DescribeCut(m).In(flagName), losses: fault.All(report.Losses(m), flagName),
		Packing: report.Packed(m),
		Adding:  dataset.HasAddition(fsys, dir)}
	decode := func([]uint32) string { return "" }
	if tok, err := tokenizers.OfDataset(fsys, dir, m); err != nil {
		warn(stderr, "examples are shown as ids: "+err.Error())
	} else {
		decode = tok.Decode
	}
	for i := range m.Splits {
		info := &m.Splits[i]
		s := inspectedSplit{Name: info.Name, Examples: info.Examples, Tokens: info.Tokens, Labels: info.LabelTokens,
			Shards: info.NumShards(), Bytes: info.ShardBytes(), Lengths: statistics(info), Fill: report.Fill(m, info),
			Sources: info.Sources, histogram: info.Lengths}
		s.Loss, s.Share = m.Loss(info)
		rows, err := d.Split(info.Name)
		if err != nil {
			return nil, err
		}
		n := min(int64(examples), info.Examples)
		for k := range n {
			var row shard.Row
			at := k * info.Examples / n
			if err := rows.ReadRow(at, &row); err != nil {
				return nil, err
			}
			x := sample{Row: at, Document: row.Document, Part: row.Part, InputIDs: row.AppendInputIDs(nil)}
			x.Text = decode(x.InputIDs)
			if m.Schema.Labels {
				x.Labels = row.AppendLabels(nil)
				x.Target = decode(x.Labels)
			}
			if m.Schema.LossMask {
				x.LossMask = row.LossMask
				for i, id := range x.InputIDs {
					if i < len(x.LossMask) && x.LossMask[i] {
						x.masked = append(x.masked, id)
					}
				}
				x.Target = decode(x.masked)
			}
			s.Samples = append(s.Samples, x)
		}
		out.Splits = append(out.Splits, s)
	}
	return out, nil
}

// statistics computes quantiles from the manifest's histogram, as upper bounds of the buckets that
// hold them.
func statistics(info *shard.SplitInfo) lengthStatistics {
	st := lengthStatistics{Min: info.MinLength, Max: info.MaxLength,
		Mean: round(float64(info.Tokens) / float64(info.Examples))}
	quantile := func(q float64) int64 {
		left := int64(q * float64(info.Examples))
		for _, bucket := range info.Lengths {
			if left -= bucket[1]; left < 0 {
				_, high := shard.BucketBounds(bucket[0])
				return min(high, info.MaxLength)
			}
		}
		return info.MaxLength
	}
	st.P50, st.P95 = quantile(0.5), quantile(0.95)
	return st
}

func (in *inspection) text(width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: format version %d, tokenizer %s (%s ids)\n", in.Dataset, in.Version, in.Tokenizer.Name,
		formatCount(int64(in.Tokenizer.VocabSize)))
	for _, src := range in.Sources {
		size := formatSize(src.Bytes)
		switch {
		case strings.HasPrefix(src.URI, "synth://"):
			size = "endless"
		case src.Bytes < 0: // a pipe, or an answer without a length
			size = "size unknown"
		}
		if src.Files > 0 {
			size = plural(src.Files, "file") + ", " + size
		}
		fmt.Fprintf(&b, "from %s (%s)\n", oneLine(src.URI), size)
	}
	if in.cut != "" {
		fmt.Fprintf(&b, "%s\n", in.cut)
	}
	c := counts.Of(in.Counters, in.Dropped)
	if n := c.ValRest + c.CopiedExamples; n > 0 {
		fmt.Fprintf(&b,
			"%s in neither split: %s of held-out documents that val had no room for, %s of copies of them\n",
			plural(n, "example"), formatCount(c.ValRest), formatCount(c.CopiedExamples))
	}
	for _, lost := range losses(c.Rejected, c.Dropped) {
		b.WriteString(lost + "\n")
	}
	if in.Adding {
		b.WriteString("an addition is unfinished: run its command again to finish it, " +
			"or another one with --append --overwrite to discard it\n")
	}
	if in.Packing != nil {
		fmt.Fprintf(&b, "%s\n", describePacking(in.Packing))
	}
	for _, loss := range in.losses {
		fmt.Fprintf(&b, "%s\n", loss)
	}
	for _, s := range in.Splits {
		s.write(&b, width, in.Packing != nil)
	}
	return b.String()
}

// write writes the lines of a split.
func (s *inspectedSplit) write(b *strings.Builder, width int, packed bool) {
	fmt.Fprintf(b, "\n%s: %s, %s", s.Name, plural(s.Examples, "example"), plural(s.Tokens, "token"))
	if s.Labels > 0 {
		fmt.Fprintf(b, " and %s of labels", plural(s.Labels, "token"))
	}
	fmt.Fprintf(b, ", %s in %s, %s\n", formatSize(s.Bytes), plural(s.Shards, "shard"), lossOn(s.Loss, s.Share))
	b.WriteString(stats.SourceText(s.Sources, sourcesListed))
	fmt.Fprintf(b, "lengths: %d to %d tokens, mean %.1f, median %d, 95th percentile %d", s.Lengths.Min,
		s.Lengths.Max, s.Lengths.Mean, s.Lengths.P50, s.Lengths.P95)
	// Rows that were cut or filled pile up at the longest length. Shorter ones in its bucket have at least a token less.
	last := s.histogram[len(s.histogram)-1]
	if n := last[2] - last[1]*(s.Lengths.Max-1); n > 1 {
		fmt.Fprintf(b, "; %s%s of the longest length, %d", map[bool]string{false: "at least "}[n == last[1]], plural(n, "row"),
			s.Lengths.Max)
	}
	b.WriteByte('\n')
	b.WriteString(histogram(s.histogram, s.Lengths.Max, min(width, defaultColumns)))
	if packed {
		fmt.Fprintf(b, "fill: %.2f%%\n", 100*s.Fill)
	}
	for _, x := range s.Samples {
		fmt.Fprintf(b, "\n[%d] document %d, part %d, %s\n", x.Row, x.Document, x.Part,
			plural(len(x.InputIDs), "token"))
		fmt.Fprintf(b, "%s\n", indent(shown(x.Text, x.InputIDs)))
		if x.Labels != nil {
			fmt.Fprintf(b, "  =>\n%s\n", indent(shown(x.Target, x.Labels)))
		}
		if x.masked != nil {
			fmt.Fprintf(b, "  loss on\n%s\n", indent(shown(x.Target, x.masked)))
		}
	}
}

// maxShownRunes is the length of a sample's text, so that it fits a screen.
const maxShownRunes = 600

func shown(text string, ids []uint32) string {
	if text == "" {
		text = fmt.Sprint(ids)
	}
	if r := []rune(text); len(r) > maxShownRunes {
		return string(r[:maxShownRunes]) + " […]"
	}
	return text
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}

// printUnfinished prints the progress of an unfinished build.
func printUnfinished(w io.Writer, dir string, u *ingest.Unfinished, asJSON bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: no dataset yet, its build is unfinished; run the same build command again to resume it\n", dir)
	fmt.Fprintf(&b, "at the last checkpoint: %s, %s, from %s, %s of text\n", plural(u.Examples, "example"),
		plural(u.Tokens, "token"),
		plural(u.Documents, "document"), formatSize(u.TextBytes))
	if u.Rejected > 0 {
		fmt.Fprintf(&b, "%s skipped\n", plural(u.Rejected, "bad record"))
	}
	for _, loss := range u.Losses() {
		fmt.Fprintf(&b, "%s\n", loss)
	}
	if u.Source != "" {
		fmt.Fprintf(&b, "in %s, after row %s", u.Source, formatCount(u.Row))
		if u.TotalBytes > 0 {
			fmt.Fprintf(&b, ": %s of %s of the sources, %.1f%%", formatSize(u.SourceBytes), formatSize(u.TotalBytes),
				100*float64(u.SourceBytes)/float64(u.TotalBytes))
		}
		b.WriteByte('\n')
	}
	return printResult(w, asJSON, struct {
		Dataset string `json:"dataset"`
		NotDone bool   `json:"unfinished"`
		*ingest.Unfinished
	}{dir, true, u}, b.String())
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/stats"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

// statsMemory is the soft limit on the Go runtime. The data that stats holds has fixed sizes, so
// this limits only garbage.
const statsMemory = 96 << 20

func newStatsCommand() *cobra.Command {
	var asJSON bool
	var html string
	cmd := &cobra.Command{
		Use:   "stats DATASET [DATASET]",
		Short: "Show lengths, padding waste, packing fill and tokens; compare two datasets",
		Long: `Reads a dataset and shows how long its rows and documents are, how much of each batch would be
padding by batch size and bucket, how full packed rows would be, and what its tokens are.
Two datasets are shown side by side. Memory does not grow with the number of rows;
estimated figures are marked.`,
		Example: `  dsload stats dsload-data
  dsload stats dsload-data --html report.html
  dsload stats data-gpt2 data-llama --html compared.html
  dsload stats dsload-data --json | jq '.splits[0].padding'`,
		Args: folders(numArgs(1, 2, "one or two datasets")),
		RunE: onDatasets(store.ReaderOptions{}, func(cmd *cobra.Command, args []string, at *datasetFS) error {
			return runStats(cmd, args, at, html, asJSON)
		}),
	}
	cmd.Flags().StringVar(&html, "html", "", "write a report to `FILE`: one self-contained page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func runStats(cmd *cobra.Command, dirs []string, at *datasetFS, html string, asJSON bool) error {
	if err := checkPage(html); err != nil {
		return fmt.Errorf("stats --html %s: %w", html, err)
	}
	setSoftLimit(statsMemory + at.bytes())
	var reports []*stats.Report
	for _, dir := range dirs {
		r, err := statsOf(cmd, at, dir)
		if err != nil {
			return fmt.Errorf("stats %s: %w", dir, err)
		}
		reports = append(reports, r)
	}
	if html != "" {
		if err := writeReport(html, reports); err != nil {
			return fmt.Errorf("stats --html %s: %w", html, err)
		}
	}
	out := cmd.OutOrStdout()
	switch {
	case asJSON && len(reports) == 1:
		return json.NewEncoder(out).Encode(reports[0])
	case asJSON:
		return json.NewEncoder(out).Encode(struct {
			Datasets []*stats.Report `json:"datasets"`
		}{reports})
	}
	text := statsText(reports)
	if html != "" {
		text += fmt.Sprintf("\nwrote %s\n", html)
	}
	return writeText(out, text)
}

func statsOf(cmd *cobra.Command, fsys shardfile.FS, dir string) (_ *stats.Report, err error) {
	d, err := shard.OpenFS(fsys, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return stats.Run(cmd.Context(), d, stats.Options{
		OpenTokenizer: func() (*tokenize.Tokenizer, error) { return tokenizers.OfDataset(fsys, dir, d.Manifest()) },
	})
}

// writeReport writes reports as a page.
func writeReport(name string, reports []*stats.Report) error {
	var page bytes.Buffer
	if err := stats.WriteHTML(&page, reports); err != nil {
		return err
	}
	return writePage(name, page.Bytes())
}

// statsText is the result for people: the answer first.
func statsText(reports []*stats.Report) string {
	var b strings.Builder
	var splits []*stats.Split
	var titles []string
	names := stats.Names(reports)
	for i, r := range reports {
		fmt.Fprintf(&b, "%s: %s\n", oneLine(names[i]), r.Headline())
		for j := range r.Splits {
			splits = append(splits, &r.Splits[j])
			title := r.Splits[j].Name
			if len(reports) > 1 {
				title = oneLine(names[i]) + " " + title
			}
			titles = append(titles, title)
		}
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "  %s\n  curl --unix-socket SOCKET 'http://dsload%s'\n", oneLine(r.Loader()), r.Query())
	}
	table := [][]string{append([]string{""}, titles...)}
	for _, f := range stats.Figures(splits) {
		table = append(table, append([]string{f.Name}, f.Values...))
	}
	b.WriteString("\n" + aligned(table))
	for i, s := range splits {
		fmt.Fprintf(&b, "\n%s: padding in batches, when windows of the shuffled order are sorted by length\n",
			titles[i])
		b.WriteString(aligned(paddingTable(s)))
	}
	for i, s := range splits {
		fmt.Fprintf(&b, "\n%s: how full rows are when packed\n", titles[i])
		b.WriteString(aligned(packingTable(s)))
	}
	for i, s := range splits {
		fmt.Fprintf(&b, "\n%s: most frequent tokens\n%s", titles[i], topText(s))
	}
	for i, s := range splits {
		for _, x := range s.Samples[:min(1, len(s.Samples))] {
			fmt.Fprintf(&b, "\n%s: row %d, %s\n%s\n", titles[i], x.Row, plural(x.Tokens, "token"),
				indent(sampleText(x)))
		}
	}
	b.WriteByte('\n')
	for i, r := range reports {
		for _, note := range r.Notes {
			if len(reports) > 1 {
				note = names[i] + ": " + note
			}
			fmt.Fprintf(&b, "note: %s\n", oneLine(note))
		}
	}
	return b.String()
}

func paddingTable(s *stats.Split) [][]string {
	head := []string{""}
	rows := map[int][]string{}
	var order []int
	for _, p := range s.Padding {
		if rows[p.BatchSize] == nil {
			order = append(order, p.BatchSize)
			rows[p.BatchSize] = []string{fmt.Sprintf("batch %d", p.BatchSize)}
		}
		if p.BatchSize == order[0] {
			title := fmt.Sprintf("bucket %d", p.Bucket)
			if p.Bucket == 0 {
				title = "no bucket"
			}
			head = append(head, title)
		}
		rows[p.BatchSize] = append(rows[p.BatchSize], stats.Percent(p.Waste))
	}
	table := [][]string{head}
	for _, size := range order {
		table = append(table, rows[size])
	}
	return table
}

func packingTable(s *stats.Split) [][]string {
	table := [][]string{{""}}
	last := -1
	for _, p := range s.Packing {
		if p.Length != last {
			table = append(table, []string{fmt.Sprintf("length %d", p.Length)})
			last = p.Length
		}
		if len(table) == 2 {
			table[0] = append(table[0], p.Policy)
		}
		cell := stats.Percent(p.Fill)
		if p.Dropped > 0 {
			cell += ", drops " + stats.Percent(float64(p.Dropped)/float64(s.Tokens))
		}
		table[len(table)-1] = append(table[len(table)-1], cell)
	}
	return table
}

func topText(s *stats.Split) string {
	var table [][]string
	for _, t := range s.TopTokens[:min(10, len(s.TopTokens))] {
		name := fmt.Sprintf("%q", t.Text)
		if t.Text == "" {
			name = ""
		}
		table = append(table, []string{fmt.Sprintf("%d %s", t.ID, name), stats.Rate(t.Count, s.Tokens)})
	}
	return aligned(table)
}

// sampleText shows where tokens begin and end.
func sampleText(x stats.Sample) string {
	const most = 60
	var parts []string
	for _, p := range x.Pieces[:min(most, len(x.Pieces))] {
		text := showBreaks(p.Text)
		if text == "" {
			text = fmt.Sprint(p.IDs[0])
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "│")
	if x.Tokens > most {
		text += " […]"
	}
	return text
}

// aligned formats a table: the first column is left-aligned, the others are right-aligned.
func aligned(table [][]string) string {
	var widths []int
	for _, row := range table {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range table {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + space)
			} else {
				line.WriteString("  " + space + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

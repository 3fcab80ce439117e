package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

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
	setSoftLimit(statsMemory + at.buckets.MemoryBytes())
	var reports []*stats.Report
	for _, dir := range dirs {
		r, err := statsOf(cmd, at, dir)
		if err != nil {
			return fmt.Errorf("stats %s: %w", dir, err)
		}
		reports = append(reports, r)
	}
	if html != "" {
		var page bytes.Buffer
		err := stats.WriteHTML(&page, reports)
		if err == nil {
			err = writePage(html, page.Bytes())
		}
		if err != nil {
			return fmt.Errorf("stats --html %s: %w", html, err)
		}
	}
	var b strings.Builder
	if err := stats.WriteText(&b, reports); err != nil {
		return err
	}
	if html != "" {
		fmt.Fprintf(&b, "\nwrote %s\n", html)
	}
	result := any(reports[0])
	if len(reports) > 1 {
		result = map[string]any{"datasets": reports}
	}
	return printResult(cmd.OutOrStdout(), asJSON, result, b.String())
}

func statsOf(cmd *cobra.Command, fsys shardfile.ReadFS, dir string) (_ *stats.Report, err error) {
	d, err := shard.OpenFS(fsys, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return stats.Run(cmd.Context(), d, stats.Options{
		OpenTokenizer: func() (*tokenize.Tokenizer, error) { return tokenizers.OfDataset(fsys, dir, d.Manifest()) },
	})
}

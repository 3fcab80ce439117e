package main

import (
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/resident"
	"github.com/spf13/cobra"
)

func newMergeCommand() *cobra.Command {
	var o merge.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge DIR",
		Short: "Check the partitions of a plan in a folder and join them into a dataset",
		Long: `Checks that every partition of the plan exists, that all have the plan's
settings, tokenizer and columns, and that each shard has its checksums; then it writes
the manifest. No row is moved, unless --max-examples, --max-val-examples or --max-tokens
ends the dataset inside a shard: that shard is copied up to there, and the rest is
removed.
In a bucket the shards are read once to compare them, unless --quick is given.`,
		Example: `  dsload merge data
  dsload merge s3://bucket/data
  dsload merge data --quick    # sizes and footers, for very large datasets`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && remote.Writable(args[0]) && remote.CheckSigned(args[0]) == nil {
				return nil
			}
			return folders(oneArg("one folder of partitions"))(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = args[0]
			setRuntimeLimit(resident.DefaultMemory())
			s, err := merge.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			notesInFlags(s.Notes)
			return printResult(cmd.OutOrStdout(), asJSON, s, describeMerge(s))
		},
	}
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "compare sizes and footers of the shards, and do not read their rows")
	cmd.Flags().IntVar(&o.Workers, "workers", 0, "shards compared at once (default the CPU quota)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the summary as one JSON object")
	return cmd
}

func describeMerge(s *merge.Summary) string {
	var b strings.Builder
	describeSplits(&b, s.Splits)
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if s.Removed > 0 {
		fmt.Fprintf(&b, "removed: %s that a budget left out\n", plural(s.Removed, "shard"))
	}
	if s.Already {
		fmt.Fprintf(&b, "already merged: %s\n", s.Out)
		return b.String() + nextOf(s.Out)
	}
	fmt.Fprintf(&b, "merged %s into %s in %.1f s, peak memory %s\n", plural(s.Partitions, "partition"), s.Out,
		s.Seconds, formatSize(s.PeakRSS))
	return b.String() + nextOf(s.Out)
}

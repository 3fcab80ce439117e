package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
)

// maxDamageListed is how many damaged files verify names.
const maxDamageListed = 1000

func newVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DATASET",
		Short: "Check every checksum and invariant; name each damaged file",
		Long: `Reads every byte of a dataset and checks it against the manifest: checksums, the structure
of every shard, ids, counts, lengths and order. It names each damaged file, of very many
the first 1,000, and in a shard the damaged record batches with their rows and
bytes. It exits with 3 if anything is damaged. Every file is read once; files in a bucket
(s3://, gs://, az://) are streamed without disk space.`,
		Example: "  dsload verify dsload-data\n  dsload verify s3://bucket/data\n  dsload verify dsload-data --json",
		Args:    folders(oneArg("one dataset")),
		RunE: onDatasets(store.ReaderOptions{NoCache: true},
			func(cmd *cobra.Command, args []string, at *datasetFS) error {
				damage, damaged, err := shard.VerifyFirst(cmd.Context(), at, args[0], maxDamageListed, nil)
				if err != nil {
					return err
				}
				if err := unread(damage); err != nil {
					return fmt.Errorf("verify %s: %w", args[0], err)
				}
				out := cmd.OutOrStdout()
				if err := reportDamage(out, args[0], damage, damaged, asJSON); err != nil {
					return err
				}
				if len(damage) > 0 {
					return fault.Kindf(fault.Corrupt, "verify %s: %s damaged; build it again with --overwrite",
						args[0], plural(damaged, "file"))
				}
				if !asJSON {
					err = writeText(out, fmt.Sprintf("%s: intact\n", oneLine(args[0])))
				}
				return err
			}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// unread returns the first error about a file that could not be read, so that it may be intact.
func unread(damage []shard.Damage) error {
	for _, d := range damage {
		if fault.KindOf(d.Err) == fault.Unreachable || errors.Is(d.Err, fs.ErrPermission) {
			return d.Err
		}
	}
	return nil
}

// reportDamage prints a line for each damaged file, or one JSON object. damaged counts those that are
// not listed, too.
func reportDamage(out io.Writer, dir string, damage []shard.Damage, damaged int64, asJSON bool) error {
	type entry struct {
		File   string `json:"file"`
		Reason string `json:"reason"`
	}
	result := struct {
		Dataset string  `json:"dataset"`
		Intact  bool    `json:"intact"`
		Damage  []entry `json:"damage"`
		More    int64   `json:"more,omitempty"` // damaged files that are not listed
	}{dir, len(damage) == 0, []entry{}, damaged - int64(len(damage))}
	var b strings.Builder
	for _, d := range damage {
		result.Damage = append(result.Damage, entry{d.File, errorLine(d.Err)})
		fmt.Fprintf(&b, "%s: %s\n", oneLine(d.File), errorLine(d.Err))
	}
	if result.More > 0 {
		fmt.Fprintf(&b, "and %s\n", plural(result.More, "more file"))
	}
	return printResult(out, asJSON, result, b.String())
}

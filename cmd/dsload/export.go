package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
)

// exportMemory is the soft limit on the Go runtime during an export. Its buffers have fixed sizes,
// so this only limits garbage.
const exportMemory = 48 << 20

type exportFlags struct {
	to        []string
	out       string
	overwrite bool
	unmasked  bool
	asJSON    bool
}

func newExportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export DATASET --to FORMAT[,FORMAT...] --out DIR",
		Short: "Write a dataset in the formats of other trainers",
		Long: `Writes every split of a dataset in the formats of other trainers. A sequence is
a document: its chunks are joined. Formats that are a flat file of tokens share it by hard links.

  megatron  SPLIT.bin, SPLIT.idx                 Megatron-LM, NeMo
  nanogpt   SPLIT.bin, meta.json                 nanoGPT
  nanotron  SPLIT.ds, .ds.index, .ds.metadata    nanotron, datatrove
  olmo      SPLIT.npy, SPLIT.csv.gz              OLMo-core
  hf        hf/                                  datasets.load_from_disk("DIR/hf")
  trl       trl/                                 TRL's SFTTrainer, by load_from_disk too
  litdata   SPLIT/                               litgpt, litdata's TokensLoader
  jsonl     SPLIT.jsonl                          decoded text and ids
  parquet   SPLIT.parquet                        anything that reads parquet

What carries no loss is -100 in the labels of hf, trl, jsonl and parquet, and false in
SPLIT.label_mask of olmo and SPLIT.ds.loss of nanotron. The other formats cannot say it.

Running the same command again, also after a kill, gives the same bytes.`,
		Example: `  dsload export data --to megatron,olmo --out tokens
  dsload export data --to hf --out exported`,
		Args: folders(oneArg("one dataset")),
		RunE: onDatasets(store.ReaderOptions{}, func(cmd *cobra.Command, args []string, at *datasetFS) error {
			return runExport(cmd, args[0], at, &f)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.to, "to", nil, "formats, separated by commas: "+strings.Join(export.Formats, ", "))
	flags.StringVarP(&f.out, "out", "o", "", "folder to write into")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace files of another dataset or program")
	flags.BoolVar(&f.unmasked, "without-mask", false, "leave a loss mask out of formats that have no place for one: all is trained on")
	flags.BoolVar(&f.asJSON, "json", false, "print the summary as one JSON object")
	help.NameValues(flags, "FORMATS", "to")
	help.NameValues(flags, "DIR", "out")
	completes(cmd, "to", export.Formats)
	help.InGroup(flags, help.GroupOutput, "to", "out", "without-mask")
	return cmd
}

func runExport(cmd *cobra.Command, dir string, at *datasetFS, f *exportFlags) (err error) {
	for i, name := range f.to {
		f.to[i] = strings.TrimSpace(name) // "jsonl, hf" is a list as well
		if !slices.Contains(export.Formats, f.to[i]) {
			return fault.BadOption("formats", f.to[i], "%s", spelling.OneOf(f.to[i], export.Formats))
		}
	}
	setSoftLimit(exportMemory + at.buckets.MemoryBytes())
	d, err := shard.OpenFS(at, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	o := export.Options{Formats: f.to, Out: f.out, Overwrite: f.overwrite, WithoutMask: f.unmasked}
	if slices.Contains(f.to, export.JSONL) {
		tok, err := tokenizers.OfDataset(at, dir, d.Manifest())
		if err != nil {
			return fmt.Errorf("export jsonl: %w", err)
		}
		o.Decode = tok.Decode
	}
	s, err := export.Run(cmd.Context(), d, o)
	if err != nil {
		return exportError(dir, err)
	}
	return printResult(cmd.OutOrStdout(), f.asJSON, s, describeExport(s))
}

// exportError adds advice to an error.
func exportError(dir string, err error) error {
	err = fmt.Errorf("export %s: %w", dir, err)
	if fault.OptionOf(err) == "" && errors.Is(err, context.Canceled) {
		return fault.Kindf(fault.Interrupted, "export %s: interrupted; run the same command again, which starts over", dir)
	}
	return err
}

func describeExport(s *export.Summary) string {
	var b strings.Builder
	for _, split := range s.Splits {
		fmt.Fprintf(&b, "%s: %s, %s\n", split.Name, plural(split.Documents, "document"), plural(split.Tokens, "token"))
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	fmt.Fprintf(&b, "wrote %s to %s\n", strings.Join(s.Formats, ", "), s.Out)
	for _, format := range s.Formats {
		fmt.Fprintf(&b, "next: %s\n", opens(s, format))
	}
	return b.String()
}

// opens returns the line by which a program takes what was written in a format: in Python, a shell or its
// configuration.
func opens(s *export.Summary, format string) string {
	split := s.Splits[0].Name
	file := func(name string) string { return filepath.Join(s.Out, name) }
	switch format {
	case export.HF:
		return fmt.Sprintf("datasets.load_from_disk(%q)", file(export.HF))
	case export.TRL:
		return fmt.Sprintf("datasets.load_from_disk(%q)[%q]  # SFTTrainer's train_dataset, with SFTConfig(max_length=None)",
			file(export.TRL), split)
	case export.LitData:
		return fmt.Sprintf("litdata.StreamingDataset(%q, item_loader=litdata.TokensLoader(block_size=2048))", file(split))
	case export.Parquet:
		return fmt.Sprintf("pyarrow.parquet.read_table(%q)", file(split+".parquet"))
	case export.JSONL:
		return fmt.Sprintf(`datasets.load_dataset("json", data_files=%q, split="train")`, file(split+".jsonl"))
	case export.NanoGPT:
		return fmt.Sprintf(`numpy.memmap(%q, dtype="uint%d", mode="r")`, file(split+".bin"), 8*s.TokenSize)
	case export.OLMo:
		return fmt.Sprintf("data: {paths: [%s]}", file(split+".npy"))
	case export.Nanotron:
		return fmt.Sprintf("dataset: {dataset_folder: [%s]}", absOut(s.Out))
	}
	return fmt.Sprintf("torchrun pretrain_gpt.py --data-path %s", shell.Quote(file(split)))
}

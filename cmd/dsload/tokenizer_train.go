package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/train"
	"github.com/spf13/cobra"
)

// trained is the result of `tokenizer train`.
type trained struct {
	File        string `json:"file"`
	Family      string `json:"family"`
	VocabSize   int    `json:"vocab_size"`
	Documents   int64  `json:"documents"`
	TextBytes   int64  `json:"text_bytes"`
	Words       int64  `json:"words"`
	UniqueWords int    `json:"unique_words"`
	Dropped     int64  `json:"dropped_words"`     // occurrences dropped for memory or length
	Unknown     int64  `json:"unknown,omitempty"` // occurrences of characters without a token
	UnknownOf   int    `json:"unknown_chars,omitempty"`
	Fingerprint string `json:"fingerprint"`
	Short       string `json:"short,omitempty"` // why it has fewer tokens than requested
}

type trainFlags struct {
	opts                        train.Options
	family, out, format, field  string
	vocabSize, frequency, bytes int64
	asJSON, overwrite           bool
}

func newTokenizerTrainCommand() *cobra.Command {
	f := trainFlags{vocabSize: 32000, frequency: 2}
	f.opts.MaxMemory = 256 << 20
	cmd := &cobra.Command{
		Use:   "train SOURCE...",
		Short: "Learn a vocabulary and write it as tokenizer.json",
		Long: `Streams the sources, counts words within --memory, and learns a vocabulary with
which Hugging Face's tokenizers give the same ids. Equal text in equal order gives equal bytes.
If words need more memory, the rarest are dropped, and the result says how many.

A SOURCE is what build takes: a path, a glob, a folder, "-", or synth://wikitext.`,
		Example: `  dsload tokenizer train corpus/*.txt --out my-tokenizer
  dsload tokenizer train corpus.txt --family wordpiece --lowercase --vocab-size 30000
  dsload tokenizer train data.jsonl.gz --family unigram --text-field content --out unigram.json`,
		Annotations: map[string]string{help.UsualFlags: "out family vocab-size min-frequency special format text-field " +
			"max-bytes memory overwrite"},
		Args: someArgs("at least one source"),
		RunE: func(cmd *cobra.Command, args []string) error { return runTrain(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.out, "out", "o", "tokenizer.json", "file, or folder for a tokenizer.json")
	flags.StringVar(&f.family, "family", string(train.ByteLevelBPE), "bytelevel-bpe, wordpiece or unigram")
	flags.Var(sizeValue{&f.vocabSize, true}, "vocab-size", "tokens, special ones included")
	flags.Var(sizeValue{&f.frequency, true}, "min-frequency", "occurrences that a merge needs")
	flags.StringArrayVar(&f.opts.SpecialTokens, "special", nil,
		"special token, repeatable; the first gets id 0 (default the family's usual ones)")
	flags.StringVar(&f.opts.Split, "split", "",
		"how byte-level BPE cuts words: gpt2, cl100k, qwen2 or o200k (default gpt2)")
	completes(cmd, "family", train.Families)
	completes(cmd, "split", train.Splits())
	flags.BoolVar(&f.opts.Lowercase, "lowercase", false, "lower case; wordpiece also strips accents")
	flags.Var(sizeValue{&f.bytes, false}, "max-bytes", "stop after this much text, 0 for no limit")
	flags.Var(sizeValue{&f.opts.MaxMemory, false}, "memory", "limit of the tables")
	flags.StringVar(&f.format, "format", "auto", "format of the sources, as build takes it")
	flags.StringVar(&f.field, "text-field", "", "field of a record that holds the text (default text)")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace the file if it exists")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	help.InGroup(flags, "Vocabulary", "family", "vocab-size", "min-frequency", "special", "split", "lowercase")
	help.NameValues(flags, "FILE", "out")
	help.NameValues(flags, "TOKEN", "special")
	help.InGroup(flags, help.GroupOutput, "out")
	likeOption(flags, "format", "text-field", "max-bytes")
	return cmd
}

func runTrain(cmd *cobra.Command, args []string, f *trainFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	path, err := f.target()
	if err != nil {
		return err
	}
	o := f.opts
	o.Family = train.Family(f.family)
	o.VocabSize, o.MinFrequency = int(f.vocabSize), int(f.frequency)
	trainer, err := newTrainer(o)
	if err != nil {
		return err
	}
	result := trained{File: path}
	if err := addSources(cmd, args, f, trainer, &result); err != nil {
		return fmt.Errorf("train: %w", adviseField(err))
	}
	stats := trainer.Stats()
	data, err := trainer.Finish()
	if err != nil {
		return fault.Kindf(fault.Corrupt, "%w", err)
	}
	tok, err := tokenize.Parse(data, tokenize.Options{})
	if err != nil {
		return fmt.Errorf("train: the learned tokenizer cannot be read: %w", err)
	}
	err = os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = writeAtomically(path, data)
	}
	if err != nil {
		return fmt.Errorf("train: write %s: %w", path, err)
	}
	result.Family, result.VocabSize, result.Fingerprint = f.family, tok.VocabSize(), tok.Fingerprint()
	result.Short = trainer.Short()
	result.UnknownOf, result.Unknown = trainer.Unknown()
	result.Words, result.UniqueWords, result.Dropped = stats.Words, stats.Unique, stats.Dropped
	return printResult(cmd.OutOrStdout(), f.asJSON, result, result.describe(f.vocabSize))
}

// check returns an error for options that nothing can be trained with.
func (f *trainFlags) check() error {
	if !slices.Contains(train.Families, train.Family(f.family)) {
		return usagef("--family %s: %s", f.family, spelling.OneOf(f.family, train.Families))
	}
	if split := f.opts.Split; split != "" && !slices.Contains(train.Splits(), split) {
		return usagef("--split %s: %s", split, spelling.OneOf(split, train.Splits()))
	}
	for _, size := range []struct {
		flag string
		n    int64
	}{{"vocab-size", f.vocabSize}, {"min-frequency", f.frequency}} {
		if size.n == 0 { // 0 is the package's default
			return usagef("--%s 0: must be at least 1", size.flag)
		}
	}
	format, _ := option.Named("format")
	return format.Check(&option.Options{Settings: option.Settings{Format: source.Format(f.format)}})
}

// target returns the file to write, or an error if it cannot or may not be written.
func (f *trainFlags) target() (path string, err error) {
	if path = f.out; !strings.HasSuffix(path, ".json") {
		path = filepath.Join(path, "tokenizer.json")
	}
	if _, err := os.Stat(path); err == nil && !f.overwrite {
		return "", usagef("--out %s: exists already; give --overwrite to replace it", path)
	}
	if err = checkLocal(f.out); err == nil {
		err = checkWritable(madeIn(path))
	}
	if err != nil {
		return "", usagef("--out %s: %v", f.out, err)
	}
	return path, nil
}

// describe says what was learned, where so many tokens were asked for.
func (t *trained) describe(wanted int64) string {
	dropped, short := "", ""
	if t.Dropped > 0 {
		dropped = fmt.Sprintf(", %s dropped for lack of memory or for their length", formatCount(t.Dropped))
	}
	if t.Short != "" {
		short = fmt.Sprintf("stopped at %s of --vocab-size %s: %s\n", formatCount(int64(t.VocabSize)), formatCount(wanted),
			t.Short)
	}
	if t.Unknown > 0 {
		short += fmt.Sprintf("characters without a token, which become the unknown one: %s, %s in all; --family "+
			"bytelevel-bpe leaves none\n", formatCount(int64(t.UnknownOf)), plural(t.Unknown, "occurrence"))
	}
	return fmt.Sprintf("%s: %s, from %s, %s of text, %s%s\n%s", t.File, plural(t.VocabSize, "token"),
		plural(t.Documents, "document"), formatSize(t.TextBytes), plural(t.Words, "word"), dropped, short)
}

// flagsOfTrainer are the flags of a trainer's options.
var flagsOfTrainer = map[string]fault.Option{"Family": "family", "VocabSize": "vocab-size",
	"MinFrequency": "min-frequency", "SpecialTokens": "special", "Split": "split", "MaxMemory": "memory"}

func newTrainer(o train.Options) (*train.Trainer, error) {
	trainer, err := train.New(o)
	if bad := (*train.OptionError)(nil); errors.As(err, &bad) {
		if n, ok := bad.Value.(int64); ok && bad.Field == "MaxMemory" {
			bad.Value = units.Size(n)
		}
		return nil, fault.BadOption(flagsOfTrainer[bad.Field], bad.Value, "%s", bad.Why)
	}
	return trainer, err
}

// adviseField adds to the error about a source or a record without the field of the text which flag names another.
func adviseField(err error) error {
	var field *example.FieldError
	var column *source.ColumnError
	switch {
	case errors.As(err, &field) && field.Likely != "":
		return fault.Advise(err, "take it with {text-field} %s", shell.Quote(field.Likely))
	case errors.As(err, &field), errors.As(err, &column) && len(column.Has) > 0:
		return fault.Advise(err, "name the field of the text with {text-field}")
	}
	return err
}

// addSources adds every document to the trainer, long ones in pieces.
func addSources(cmd *cobra.Command, args []string, f *trainFlags, trainer *train.Trainer, result *trained) (err error) {
	formatter, err := example.NewFormatter(example.FormatOptions{TextField: f.field})
	if err != nil {
		return usagef("--text-field %s: %v", f.field, err)
	}
	set, err := source.Open(cmd.Context(), source.Options{Args: args, Format: source.Format(f.format),
		Framing: source.Framing{TextField: formatter.StreamedField(), Fields: formatter.Fields(),
			AnyOf: formatter.AnyOf()},
		Places: source.Places{Stdin: cmd.InOrStdin(), Built: setup.BuiltFiles, Marks: setup.MarksBuild}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, note := range set.Notes() {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+oneLine(note.In(flagName)))
	}
	reader, err := set.Reader(source.Position{})
	if err != nil {
		return err
	}
	defer reader.Close()
	worker := formatter.NewWorker()
	var text example.Formatted
	var record source.Record
	var data []byte
	for f.bytes == 0 || result.TextBytes < f.bytes {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if data, err = reader.Next(data[:0], &record); err == io.EOF {
			return nil
		}
		if err := cmp.Or(err, record.Err); err != nil {
			return err
		}
		rec := example.Record{Columns: record.Columns, Comma: record.Comma, Decoded: record.Decoded,
			Template: record.Format.Template()}
		if err := worker.Format(&text, rec, data); err != nil {
			return fault.Kindf(fault.Corrupt, "%s record %d: %w", set.URI(record.Input), record.Row, err)
		}
		if err := trainer.Add(text.Prompt); err != nil {
			return err
		}
		result.TextBytes += int64(len(text.Prompt))
		if record.Last {
			result.Documents++
		}
	}
	return nil
}

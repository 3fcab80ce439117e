package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// The formats.
const (
	Megatron = "megatron" // SPLIT.bin, SPLIT.idx
	NanoGPT  = "nanogpt"  // SPLIT.bin, meta.json
	Nanotron = "nanotron" // SPLIT.ds, SPLIT.ds.index, SPLIT.ds.metadata; datatrove's
	OLMo     = "olmo"     // SPLIT.npy without a header, SPLIT.csv.gz
	HF       = "hf"       // hf/, for datasets.load_from_disk
	TRL      = "trl"      // trl/, the same with what SFTTrainer takes
	LitData  = "litdata"  // SPLIT/, also for litgpt
	JSONL    = "jsonl"    // SPLIT.jsonl
	Parquet  = "parquet"  // SPLIT.parquet
)

// Formats lists the names of all formats, in the order of the documentation.
var Formats = []string{Megatron, NanoGPT, Nanotron, OLMo, HF, TRL, LitData, JSONL, Parquet}

// Options describes what to write.
type Options struct {
	// Formats names at least one of the package's Formats.
	Formats []string
	// Out is the folder to write into. It is created if missing.
	Out string
	// Overwrite replaces files of another dataset or program.
	Overwrite bool
	// WithoutMask exports a dataset with a loss mask to formats that have no place for one: everything is trained on.
	WithoutMask bool
	// Decode returns the text of ids. Only jsonl needs it.
	Decode func(ids []uint32) string
	// Progress, if set, is called from time to time with the number of rows read from all splits.
	Progress func(rows, total int64)

	stale string // note about files that overwriting left
}

func (o Options) validate(m *shard.Manifest) error {
	if len(o.Formats) == 0 {
		return fault.BadOption("formats", nil, "name at least one of %s", strings.Join(Formats, ", "))
	}
	for i, f := range o.Formats {
		switch {
		case !slices.Contains(Formats, f):
			return fault.BadOption("formats", f, "unknown format; known are %s", strings.Join(Formats, ", "))
		case slices.Contains(o.Formats[:i], f):
			return fault.BadOption("formats", f, "is named twice")
		case m.Schema.Labels && !holdsLabels(f):
			return fault.BadOption("formats", f,
				"the dataset has targets in a column of their own, which this format cannot hold; "+
					"export hf, jsonl or parquet, or build one row from prompt and target")
		case m.Schema.LossMask && !o.WithoutMask && !holdsMask(f):
			return fault.BadOption("formats", f,
				"the dataset has a loss mask, which this format cannot hold, so all of it would be trained on; export hf, "+
					"trl, jsonl, parquet, olmo or nanotron, or pass {without-mask}")
		case f == JSONL && o.Decode == nil:
			return fault.BadOption("formats", f, "needs the dataset's tokenizer to decode its ids")
		}
	}
	if o.Out == "" {
		return fault.BadOption("out", nil, "is required; name a folder")
	}
	if scheme, _, isURL := strings.Cut(o.Out, "://"); isURL && !strings.ContainsAny(scheme, `/\`) {
		return fault.BadOption("out", o.Out,
			"exports are written to a folder of this machine; name one, and copy it from there")
	}
	if m.Schema.Segments {
		return fault.BadOption("formats", o.Formats[0],
			"the dataset is packed, so its documents are no longer whole; export the dataset before packing")
	}
	return nil
}

// holdsLabels reports whether a format has other columns than ids.
func holdsLabels(format string) bool { return format == HF || format == JSONL || format == Parquet }

// holdsMask reports whether a format says what carries loss.
func holdsMask(format string) bool {
	return holdsLabels(format) || format == TRL || format == OLMo || format == Nanotron
}

// Summary describes what an export wrote.
type Summary struct {
	Out       string         `json:"out"`
	Formats   []string       `json:"formats"`
	Splits    []SplitSummary `json:"splits"`
	TokenSize int            `json:"token_bytes,omitempty"` // bytes of an id in the shared token file, 0 if there is none
	Notes     []string       `json:"notes,omitempty"`
}

// SplitSummary counts a split's sequences.
type SplitSummary struct {
	Name      string `json:"name"`
	Documents int64  `json:"documents"`
	Tokens    int64  `json:"tokens"`
}

// Run exports every split of d. After an interruption, running it again writes the same bytes.
// If ctx ends, Run returns its error.
//
// Errors of options and folders that cannot be used have a method Kind, as in package loader, which returns
// "usage", or "limit" for ErrTooLong. Other errors are those of package shard and the file system.
func Run(ctx context.Context, d *shard.Dataset, o Options) (_ *Summary, err error) {
	m := d.Manifest()
	if err := o.validate(m); err != nil {
		return nil, err
	}
	lock, err := lockOut(o.Out)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := claim(m, &o); err != nil {
		return nil, err
	}
	s := &Summary{Out: o.Out, Formats: o.Formats}
	var total, done int64
	for _, split := range m.Splits {
		total += split.Examples
	}
	for _, split := range m.Splits {
		progress := func(rows int64) {
			if o.Progress != nil {
				o.Progress(done+rows, total)
			}
		}
		counted, err := exportSplit(ctx, d, split.Name, &o, progress)
		if err != nil {
			return nil, err
		}
		done += split.Examples
		s.Splits = append(s.Splits, counted)
	}
	if err := finish(m, &o, s); err != nil {
		return nil, err
	}
	return s, nil
}

func exportSplit(ctx context.Context, d *shard.Dataset, name string, o *Options, progress func(int64)) (SplitSummary,
	error) {
	split, err := d.Split(name)
	if err != nil {
		return SplitSummary{}, err
	}
	sinks, err := openSinks(d.Manifest(), split, name, o)
	defer func() {
		for _, s := range sinks {
			s.discard()
		}
	}()
	if err != nil {
		return SplitSummary{}, err
	}
	run := documents{ctx: ctx, split: split, sinks: sinks, done: progress}
	if err := run.run(); err != nil {
		return SplitSummary{}, err
	}
	return SplitSummary{name, run.count, run.tokens}, nil
}

// openSinks returns a sink for each format; those that share the token file have one together.
// After an error it returns the open ones.
func openSinks(m *shard.Manifest, split *shard.Split, name string, o *Options) (sinks []sink, err error) {
	base, width := filepath.Join(o.Out, name), split.IDWidth()
	var flat []string
	for _, f := range o.Formats {
		var s sink
		switch of := columnsOf(f, m.Schema, width); f {
		case HF, TRL:
			s, err = newHFSink(o.Out, f, name, m.Seal(), of)
		case LitData:
			s, err = newLitdataSink(base, width)
		case JSONL:
			s, err = newJSONLSink(base, of, m.Schema.Labels, o.Decode)
		case Parquet:
			s, err = newParquetSink(base, of)
		default:
			flat = append(flat, f)
			continue
		}
		if err != nil {
			return sinks, err
		}
		sinks = append(sinks, s)
	}
	if len(flat) == 0 {
		return sinks, nil
	}
	t, err := newTokenFile(base, flat, m, width)
	if err != nil {
		return sinks, err
	}
	return append(sinks, t), nil
}

// record is export.json, which names the dataset of the folder's files.
type record struct {
	Dataset  string   `json:"dataset"` // seal of the manifest
	Formats  []string `json:"formats"`
	Splits   []string `json:"splits"`
	Complete bool     `json:"complete"`
}

// lockOut creates the folder and locks it: two exports at once would write into each other's files.
func lockOut(out string) (shardfile.Lock, error) {
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, fault.BadOption("out", out, "is a file; exports are written into a folder")
	}
	if err := os.MkdirAll(filepath.Clean(out), 0o777); err != nil {
		return nil, fault.BadOption("out", out, "%v; name another folder", err)
	}
	lock, err := shardfile.LockFile(shardfile.OS(), filepath.Join(out, lockName))
	held, isHeld := errors.AsType[*shardfile.LockedError](err)
	switch {
	case isHeld:
		return nil, fault.BadOption("out", out, "another export writes there (process %d on %s); wait for it, or name another folder",
			held.PID, held.Host)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return nil, fault.BadOption("out", out, "no file can be made there (%v); name another folder", err)
	}
	return lock, err
}

// claim returns an error if the folder holds files of something else.
func claim(m *shard.Manifest, o *Options) error {
	formats := slices.Clone(o.Formats)
	old, err := readRecord(o.Out)
	switch {
	case err == nil && old.Dataset == m.Seal():
		for _, f := range old.Formats { // keep those of an earlier export of the same dataset
			if !slices.Contains(formats, f) {
				formats = append(formats, f)
			}
		}
	case o.Overwrite:
		if err := removeOld(o, old); err != nil {
			return fault.BadOption("out", o.Out, "a file of the export that it holds cannot be removed (%v); name another folder", err)
		}
	case err == nil:
		return foreignOut(o.Out, "holds the export of another dataset; name another folder, or pass {overwrite}")
	case errors.Is(err, fs.ErrNotExist):
		if name := foreign(m, o); name != "" {
			return foreignOut(o.Out, "already holds %s, which no export made; name another folder, or pass {overwrite}",
				name)
		}
	default:
		return err
	}
	slices.Sort(formats)
	return writeJSON(filepath.Join(o.Out, recordName), record{m.Seal(), formats, splitNames(m), false})
}

// removeOld removes the files of another dataset's export that formats of this one have names for: those that it does not
// replace would be read as part of it.
func removeOld(o *Options, old record) error {
	var left []string
	was := map[string]bool{}
	for _, f := range old.Formats {
		if !slices.Contains(o.Formats, f) || old.Splits == nil { // earlier versions did not name the splits
			left = append(left, f)
		}
		for _, split := range old.Splits {
			for _, pattern := range owned(f, split) {
				was[pattern] = true
			}
		}
	}
	if len(left) > 0 {
		o.stale = fmt.Sprintf("files of another dataset's export (%s) are next to the new ones in %s",
			strings.Join(left, ", "), o.Out)
	}
	for _, f := range o.Formats {
		for _, split := range shardfile.SplitNames {
			for _, pattern := range owned(f, split) {
				if !was[pattern] {
					continue
				}
				if err := removeMatching(o.Out, pattern); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// foreign returns a name in the folder that the export would overwrite.
func foreign(m *shard.Manifest, o *Options) string {
	names := []string{nanoGPTName, shardfile.ManifestName}
	for _, format := range Formats {
		for _, split := range m.Splits {
			for _, pattern := range owned(format, split.Name) {
				first, _, _ := strings.Cut(pattern, "/")
				names = append(names, first)
			}
		}
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(o.Out, name)); err == nil {
			return name
		}
	}
	return ""
}

func splitNames(m *shard.Manifest) (names []string) {
	for _, split := range m.Splits {
		names = append(names, split.Name)
	}
	return names
}

// maxRecordBytes limits the record, whose size depends on the number of formats alone.
const maxRecordBytes = 1 << 20

func readRecord(out string) (record, error) {
	var r record
	data, err := shardfile.ReadFile(shardfile.OS(), filepath.Join(out, recordName), maxRecordBytes)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, foreignOut(out, "%s in it is damaged; name another folder, or remove that file", recordName)
	}
	return r, nil
}

// finish writes the files that cover all splits, and completes the record.
func finish(m *shard.Manifest, o *Options, s *Summary) error {
	s.Notes = append(s.Notes, notes(m, o)...)
	if slices.ContainsFunc(o.Formats, func(f string) bool { return tokenSuffixes[f] != "" }) {
		s.TokenSize = tokenBytes(m.Schema.VocabSize)
	}
	if slices.Contains(o.Formats, NanoGPT) {
		dtype := "uint16"
		if s.TokenSize == 4 {
			dtype = "uint32"
			s.Notes = append(s.Notes,
				"nanoGPT's own train.py reads uint16: with this vocabulary, read the token file as uint32")
		}
		meta := map[string]any{"vocab_size": m.Schema.VocabSize, "dtype": dtype, "tokenizer": m.Tokenizer.Name}
		if err := writeJSON(filepath.Join(o.Out, nanoGPTName), meta); err != nil {
			return err
		}
	}
	for _, f := range o.Formats {
		if f == HF || f == TRL {
			if err := writeHFSplits(filepath.Join(o.Out, f), splitNames(m)); err != nil {
				return err
			}
		}
	}
	old, err := readRecord(o.Out)
	if err != nil {
		return err
	}
	old.Complete = true
	if err := writeJSON(filepath.Join(o.Out, recordName), old); err != nil {
		return err
	}
	return syncFolder(o.Out)
}

// notes returns what a reader of the files should know about the dataset and cannot see in them.
func notes(m *shard.Manifest, o *Options) (notes []string) {
	if o.stale != "" {
		notes = append(notes, o.stale)
	}
	if slices.Contains(o.Formats, Nanotron) && len(m.Splits) > 1 {
		notes = append(notes, "nanotron trains on all .ds files of a folder: move val.ds and val.ds.* to another one")
	}
	var without []string
	if m.Schema.LossMask {
		for _, f := range o.Formats {
			if !holdsMask(f) {
				without = append(without, f+" has no loss masks: every token of it is trained on")
			}
		}
	}
	if notes = append(notes, without...); o.WithoutMask && len(without) == 0 {
		why := "the dataset has no loss mask"
		if m.Schema.LossMask {
			why = "the loss mask is in " + strings.Join(o.Formats, ", ") + ", as it has a place there"
		}
		notes = append(notes, "nothing was left out: "+why)
	}
	var settings struct {
		SpecialTokens string `json:"special-tokens"`
	}
	if json.Unmarshal(m.Settings, &settings) == nil && settings.SpecialTokens == "chunk" {
		notes = append(notes, "the build put special tokens around each chunk of a document, "+
			"so joined chunks have them in their middle")
	}
	if n := counts.Of(m.Counters, m.Dropped).WithoutTarget; n > 0 {
		notes = append(notes, fmt.Sprintf("examples that the build left out because no token of the target "+
			"was in them: %d; documents that were cut lack these parts", n))
	}
	return notes
}

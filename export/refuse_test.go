package export_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/shard"
)

func TestRefusals(t *testing.T) {
	plain := makeDataset(t, 300, 64, corpus{"train": {{1, 2}, {3}}}, shard.Schema{})
	pairs := makeDataset(t, 300, 64, corpus{"train": {{1, 2}, {3}}}, shard.Schema{Labels: true})
	other := makeDataset(t, 300, 64, corpus{"train": {{7}}}, shard.Schema{})
	long := makeDataset(t, 300, 1<<20, corpus{"train": {make([]uint32, export.MaxRowTokens+1)}}, shard.Schema{})
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "train.bin"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	used := t.TempDir()
	runExport(t, other, used, export.Megatron)
	for _, test := range []struct {
		name    string
		d       *shard.Dataset
		o       export.Options
		mention string
	}{
		{"no format", plain, export.Options{Out: t.TempDir()}, "megatron"},
		{"unknown format", plain, export.Options{Formats: []string{"hf", "nosuch"}, Out: t.TempDir()}, "nosuch"},
		{"twice", plain, export.Options{Formats: []string{"hf", "hf"}, Out: t.TempDir()}, "twice"},
		{"no folder", plain, export.Options{Formats: []string{"hf"}}, "folder"},
		{"targets", pairs, export.Options{Formats: []string{"megatron"}, Out: t.TempDir()}, "targets"},
		{"no decoder", plain, export.Options{Formats: []string{"jsonl"}, Out: t.TempDir()}, "tokenizer"},
		{"another's file", plain, export.Options{Formats: []string{"megatron"}, Out: foreign}, "train.bin"},
		{"another dataset", plain, export.Options{Formats: []string{"megatron"}, Out: used}, "another dataset"},
		{"long row", long, export.Options{Formats: []string{"jsonl"}, Out: t.TempDir(), Decode: decodeForTest},
			"document 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := export.Run(context.Background(), test.d, test.o)
			var option *fault.Error
			if !errors.As(err, &option) || !strings.Contains(err.Error(), test.mention) {
				t.Errorf("got %v, want an option error that mentions %q", err, test.mention)
			}
		})
	}
	if got := string(readFile(t, foreign, "train.bin")); got != "mine" {
		t.Errorf("another program's file became %q", got)
	}
	runExport(t, long, t.TempDir(), export.Megatron, export.OLMo, export.Nanotron, export.NanoGPT)
}

// An export over that of a dataset with more files (a split, masks, chunks) leaves none of them to be read as its own, and
// all that no export made.
func TestOverwrittenExportIsTheNewOne(t *testing.T) {
	first := makeDataset(t, 300, 64, randomCorpus(8, 300, 40, 20, 50), shard.Schema{LossMask: true})
	second := makeDataset(t, 300, 64, corpus{"train": {{7}}}, shard.Schema{})
	pairs := [][2]string{{export.NanoGPT, export.Megatron}, {export.JSONL, export.HF}, {export.LitData, export.TRL}}
	for _, format := range export.Formats {
		pairs = append(pairs, [2]string{format, format})
	}
	for _, pair := range pairs {
		was, is := pair[0], pair[1]
		out, alone := filepath.Join(t.TempDir(), "x[b"), t.TempDir()
		exportTo := func(d *shard.Dataset, out, format string) *export.Summary {
			o := export.Options{Out: out, Formats: []string{format}, WithoutMask: true, Overwrite: true, Decode: decodeForTest}
			s, err := export.Run(context.Background(), d, o)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		exportTo(first, out, was)
		exportTo(second, alone, is)
		mine := map[string]string{"val.txt": "mine", "hf/val/notes": "mine", "val/notes": "mine", "train.ds.backup": "mine"}
		for name, text := range mine {
			path := filepath.Join(out, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		notes := fmt.Sprint(exportTo(second, out, is).Notes)
		if strings.Contains(notes, "("+was+")") == (was == is) {
			t.Errorf("%s over %s: notes %q", is, was, notes)
		}
		want, got := tree(t, alone), tree(t, out)
		maps.Copy(want, mine)
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s over %s: %s differs", is, was, name)
			}
			delete(got, name)
		}
		if _, left := got["val.bin"]; left || was == is && len(got) > 0 {
			t.Errorf("%s over %s: left are %v", is, was, slices.Collect(maps.Keys(got)))
		}
	}
}

// Two exports into one folder would take each other's files: the second is refused while the first runs.
func TestOneExportAtATime(t *testing.T) {
	d := makeDataset(t, 300, 64, corpus{"train": {{1, 2}, {3}}}, shard.Schema{})
	o := export.Options{Formats: []string{export.JSONL}, Out: t.TempDir(), Decode: decodeForTest}
	var second error
	first := o
	first.Decode = func(ids []uint32) string {
		_, second = export.Run(context.Background(), d, o)
		return decodeForTest(ids)
	}
	if _, err := export.Run(context.Background(), d, first); err != nil || second == nil || !strings.Contains(second.Error(), "another export writes there") {
		t.Errorf("the first: %v; the second: %v", err, second)
	}
	if got := len(readers[export.JSONL](t, o.Out, "train", 2)); got != 2 {
		t.Errorf("%d documents", got)
	}
	if _, err := os.Lstat(filepath.Join(o.Out, "export.lock")); !os.IsNotExist(err) {
		t.Errorf("the lock: %v", err)
	}
}

func TestMoreFormatsOfTheSameDataset(t *testing.T) {
	docs := randomCorpus(6, 300, 20, 0, 50)
	d := makeDataset(t, 300, 16, docs, shard.Schema{})
	out := t.TempDir()
	runExport(t, d, out, export.Megatron)
	runExport(t, d, out, export.OLMo)
	equalDocs(t, "megatron", readMegatron(t, out, "train", 2), docs["train"])
	equalDocs(t, "olmo", readers[export.OLMo](t, out, "train", 2), docs["train"])
	var record struct {
		Formats []string `json:"formats"`
	}
	if err := json.Unmarshal(readFile(t, out, "export.json"), &record); err != nil ||
		!slices.Equal(record.Formats, []string{"megatron", "olmo"}) {
		t.Errorf("export.json lists %v: %v", record.Formats, err)
	}
}

// TestColumnsBesidesIds checks labels and loss masks where a format has columns, and a note where
// it has none.
func TestColumnsBesidesIds(t *testing.T) {
	docs := corpus{"train": {{5, 6, 7}, {8}}}
	d := makeDataset(t, 300, 64, docs, shard.Schema{Labels: true, LossMask: true})
	out := t.TempDir()
	runExport(t, d, out, export.HF, export.JSONL)
	want := `{"text": "3\u0000<é>", "input_ids": [5, 6, 7], "target": "1\u0000<é>", "labels": [5], "loss_mask": [false, false, true]}`
	text := strings.ReplaceAll(string(readFile(t, out, "train.jsonl")), "3 ", "3")
	if first, _, _ := strings.Cut(text, "\n"); strings.ReplaceAll(first, "1 ", "1") != want {
		t.Errorf("jsonl: %s", first)
	}
	equalDocs(t, "hf", readHF(t, out, "train", 2), docs["train"])
	masked := makeDataset(t, 300, 64, docs, shard.Schema{LossMask: true})
	for _, format := range []string{export.Megatron, export.NanoGPT, export.LitData} {
		o := export.Options{Formats: []string{format}, Out: t.TempDir()}
		if _, err := export.Run(context.Background(), masked, o); err == nil || !strings.Contains(err.Error(), "without-mask") {
			t.Errorf("%s of a dataset with a mask: %v", format, err)
		}
		o.WithoutMask = true
		if s, err := export.Run(context.Background(), masked, o); err != nil || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "loss masks") {
			t.Errorf("%s: notes %q, want one about loss masks; %v", format, s.Notes, err)
		}
	}
}

// TestMasksGoAlong checks that formats with a place for it say what carries loss.
func TestMasksGoAlong(t *testing.T) {
	for _, vocab := range []int{300, 70_000} {
		docs := corpus{"train": {{5, 6, 7}, {8}}}
		masked := makeDataset(t, vocab, 64, docs, shard.Schema{LossMask: true})
		out := t.TempDir()
		runExport(t, masked, out, export.JSONL, export.OLMo, export.Nanotron, export.TRL, export.HF, export.Parquet)
		want := `"labels": [-100, -100, 7], "loss_mask": [false, false, true], "assistant_masks": [false, false, true]}`
		if first, _, _ := strings.Cut(string(readFile(t, out, "train.jsonl")), "\n"); !strings.HasSuffix(first, want) {
			t.Errorf("jsonl: %s", first)
		}
		for _, name := range []string{"train.label_mask", "train.ds.loss"} {
			if got := readFile(t, out, name); !slices.Equal(got, []byte{0, 0, 1, 1}) {
				t.Errorf("%s: %d", name, got)
			}
		}
		for folder, names := range map[string][]string{"hf": {"input_ids", "labels", "loss_mask", "assistant_masks"},
			"trl": {"input_ids", "labels", "assistant_masks"}} {
			checkMaskedHF(t, filepath.Join(out, folder, "train"), names)
		}
		noTemporary(t, out)
	}
}

// checkMaskedHF checks the columns of TestMasksGoAlong's dataset in Arrow.
func checkMaskedHF(t *testing.T, dir string, names []string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "data-00000-of-00001.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() || int(r.RecordBatch().NumCols()) != len(names) {
		t.Fatalf("%s: columns %v", dir, r.Schema())
	}
	for i, name := range names {
		want := map[string]string{"input_ids": "[[5 6 7] [8]]", "labels": "[[-100 -100 7] [8]]",
			"loss_mask": "[[false false true] [true]]", "assistant_masks": "[[false false true] [true]]"}[name]
		if got := fmt.Sprint(r.RecordBatch().Column(i)); r.Schema().Field(i).Name != name || got != want {
			t.Errorf("%s: %s %s, want %s", dir, r.Schema().Field(i).Name, got, want)
		}
	}
}

func TestDamagedShardGetsNoIndex(t *testing.T) {
	d := makeDataset(t, 50257, 64, randomCorpus(7, 50257, 500, 0, 60), shard.Schema{})
	path := filepath.Join(d.Dir(), d.Manifest().Splits[0].Shards[0].Name)
	data := readFile(t, path)
	if err := os.WriteFile(path, data[:len(data)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	_, err := export.Run(context.Background(), d, export.Options{Formats: []string{"megatron"}, Out: out})
	if !errors.Is(err, shard.ErrCorrupt) && !errors.Is(err, shard.ErrTruncated) {
		t.Errorf("a truncated shard: %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "train.idx")); !os.IsNotExist(err) {
		t.Error("damaged data got an index")
	}
	noTemporary(t, out)
}

// A link that lies in the place of a folder is refused, and what it leads to is left alone.
func TestLinkedFoldersAreRefused(t *testing.T) {
	d := makeDataset(t, 300, 64, corpus{"train": {{1, 2}, {3}}}, shard.Schema{})
	for link, format := range map[string]string{"hf": export.HF, filepath.Join("hf", "train"): export.HF,
		"train": export.LitData} {
		out, elsewhere := t.TempDir(), t.TempDir()
		mine := filepath.Join(elsewhere, "data-00000-of-00001.arrow")
		err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(out, link)), 0o777),
			os.Symlink(elsewhere, filepath.Join(out, link)), os.WriteFile(mine, []byte("mine"), 0o666))
		if err != nil {
			t.Fatal(err)
		}
		_, err = export.Run(context.Background(), d, export.Options{Formats: []string{format}, Out: out,
			Overwrite: true})
		var option *fault.Error
		if !errors.As(err, &option) || !strings.Contains(err.Error(), "not a folder") {
			t.Errorf("%s: %v", link, err)
		}
		if names, _ := os.ReadDir(elsewhere); len(names) != 1 ||
			string(readFile(t, elsewhere, filepath.Base(mine))) != "mine" {
			t.Errorf("%s: what it leads to was changed: %v", link, names)
		}
	}
}

package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// corpus is what a test dataset holds: per split, the documents.
type corpus map[string][][]uint32

// makeDataset writes a dataset whose documents are cut to rows of at most maxRow ids.
func makeDataset(t *testing.T, vocab, maxRow int, docs corpus, schema shard.Schema) *shard.Dataset {
	t.Helper()
	dir := t.TempDir()
	schema.VocabSize = vocab
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, dataset.BuilderOptions{Schema: schema, ShardBytes: 16 << 10,
		MaxRowTokens: maxRow, Settings: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	for _, split := range []string{"train", "val"} {
		for number, ids := range docs[split] {
			for part := int32(0); len(ids) > 0; part++ {
				n := min(len(ids), maxRow)
				row := dataset.Example{InputIDs: ids[:n], Document: int64(number), Part: part}
				if schema.Labels {
					row.Labels = ids[:1]
				}
				if schema.LossMask {
					row.LossMask = make([]bool, n)
					row.LossMask[n-1] = true
				}
				if err := b.Row(split, &row); err != nil {
					t.Fatal(err)
				}
				ids = ids[n:]
			}
		}
	}
	info := shard.TokenizerInfo{Name: "test", VocabSize: vocab, Fingerprint: strings.Repeat("0", 64)}
	if _, err := b.Finish(dataset.Provenance{Tokenizer: info}); err != nil {
		t.Fatal(err)
	}
	d, err := shard.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func randomCorpus(seed uint64, vocab, train, val, longest int) corpus {
	rnd := rand.New(rand.NewPCG(seed, 1))
	make1 := func(n int) (docs [][]uint32) {
		for range n {
			ids := make([]uint32, 1+rnd.IntN(longest))
			for i := range ids {
				ids[i] = rnd.Uint32N(uint32(vocab))
			}
			docs = append(docs, ids)
		}
		return docs
	}
	return corpus{"train": make1(train), "val": make1(val)}
}

func decodeForTest(ids []uint32) string { return fmt.Sprint(len(ids), "\x00<é>") }

func runExport(t *testing.T, d *shard.Dataset, out string, formats ...string) *export.Summary {
	t.Helper()
	s, err := export.Run(context.Background(), d, export.Options{Formats: formats, Out: out, Decode: decodeForTest})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readFile(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// cut takes ids of width bytes and document ends in ids apart again.
func cut(raw []byte, width int, ends []int) (docs [][]uint32) {
	at := 0
	for _, end := range ends {
		var ids []uint32
		for ; at < end; at++ {
			if width == 2 {
				ids = append(ids, uint32(binary.LittleEndian.Uint16(raw[2*at:])))
			} else {
				ids = append(ids, binary.LittleEndian.Uint32(raw[4*at:]))
			}
		}
		docs = append(docs, ids)
	}
	return docs
}

func equalDocs(t *testing.T, what string, got, want [][]uint32) {
	t.Helper()
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%s: %d documents for %d, or other ids", what, len(got), len(want))
	}
}

// readers restate, for each format, how its consumer finds documents in the files.
var readers = map[string]func(t *testing.T, out, split string, width int) [][]uint32{
	export.Megatron: readMegatron,
	export.NanoGPT: func(t *testing.T, out, split string, width int) [][]uint32 {
		raw := readFile(t, out, split+".bin")
		return cut(raw, width, []int{len(raw) / width})
	},
	export.Nanotron: func(t *testing.T, out, split string, width int) [][]uint32 {
		index := readFile(t, out, split+".ds.index")
		var ends []int
		for i := 0; i < len(index); i += 8 {
			ends = append(ends, int(binary.LittleEndian.Uint64(index[i:])))
		}
		raw := readFile(t, out, split+".ds")
		meta := strings.Split(string(readFile(t, out, split+".ds.metadata")), "\n")
		if want := fmt.Sprintf("test|%d", width); meta[0] != want || meta[1] != fmt.Sprint(len(raw)/width) {
			t.Errorf("metadata %q", meta)
		}
		return cut(raw, width, ends)
	},
	export.OLMo: func(t *testing.T, out, split string, width int) [][]uint32 {
		z, err := gzip.NewReader(bytes.NewReader(readFile(t, out, split+".csv.gz")))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var ends []int
		last := 0
		for line := range strings.Lines(string(text)) {
			var from, to int
			if _, err := fmt.Sscanf(line, "%d,%d\n", &from, &to); err != nil || from != last {
				t.Fatalf("line %q after %d: %v", line, last, err)
			}
			last = to
			ends = append(ends, to)
		}
		return cut(readFile(t, out, split+".npy"), width, ends)
	},
	export.HF: readHF, export.TRL: func(t *testing.T, out, split string, _ int) [][]uint32 { return readArrow(t, out, export.TRL, split) },
	export.LitData: func(t *testing.T, out, split string, _ int) (docs [][]uint32) {
		var index struct {
			Chunks []struct {
				Filename   string `json:"filename"`
				ChunkBytes int    `json:"chunk_bytes"`
				ChunkSize  int    `json:"chunk_size"`
				Dim        int    `json:"dim"`
			} `json:"chunks"`
		}
		if err := json.Unmarshal(readFile(t, out, split, "index.json"), &index); err != nil {
			t.Fatal(err)
		}
		for _, c := range index.Chunks {
			raw := readFile(t, out, split, c.Filename)
			n := int(binary.LittleEndian.Uint32(raw))
			head := 4 * (n + 2)
			if n != c.ChunkSize || len(raw) != c.ChunkBytes || len(raw)-head != 4*c.Dim {
				t.Fatalf("%s: %d items, %d bytes, index says %+v", c.Filename, n, len(raw), c)
			}
			var ends []int
			for i := range n {
				ends = append(ends, (int(binary.LittleEndian.Uint32(raw[4*(i+2):]))-head)/4)
			}
			docs = append(docs, cut(raw[head:], 4, ends)...)
		}
		return docs
	},
	export.JSONL: func(t *testing.T, out, split string, _ int) (docs [][]uint32) {
		for line := range bytes.Lines(readFile(t, out, split+".jsonl")) {
			var row struct {
				Text     string   `json:"text"`
				InputIDs []uint32 `json:"input_ids"`
			}
			if err := json.Unmarshal(line, &row); err != nil || row.Text != decodeForTest(row.InputIDs) {
				t.Fatalf("line %.60s: %q, %v", line, row.Text, err)
			}
			docs = append(docs, row.InputIDs)
		}
		return docs
	},
	export.Parquet: readParquet,
}

func readMegatron(t *testing.T, out, split string, width int) [][]uint32 {
	idx := readFile(t, out, split+".idx")
	le := binary.LittleEndian
	n, borders := int(le.Uint64(idx[18:])), int(le.Uint64(idx[26:]))
	if string(idx[:9]) != "MMIDIDX\x00\x00" || le.Uint64(idx[9:]) != 1 ||
		int(idx[17]) != map[int]int{2: 8, 4: 4}[width] ||
		borders != n+1 || len(idx) != 34+12*n+8*borders {
		t.Fatalf("index of %d bytes: % x", len(idx), idx[:34])
	}
	var ends []int
	at := 0
	for i := range n {
		if off := int(le.Uint64(idx[34+4*n+8*i:])); off != at*width || int(le.Uint64(idx[34+12*n+8*i:])) != i {
			t.Fatalf("sequence %d at byte %d, want %d", i, off, at*width)
		}
		at += int(le.Uint32(idx[34+4*i:]))
		ends = append(ends, at)
	}
	return cut(readFile(t, out, split+".bin"), width, ends)
}

func readHF(t *testing.T, out, split string, _ int) [][]uint32 {
	return readArrow(t, out, export.HF, split)
}

// readArrow reads what an export of hf or trl wrote.
func readArrow(t *testing.T, out, folder, split string) (docs [][]uint32) {
	var state struct {
		Files []struct {
			Name string `json:"filename"`
		} `json:"_data_files"`
	}
	if err := json.Unmarshal(readFile(t, out, folder, split, "state.json"), &state); err != nil {
		t.Fatal(err)
	}
	for _, f := range state.Files {
		r, err := ipc.NewReader(bytes.NewReader(readFile(t, out, folder, split, f.Name)))
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			list := r.RecordBatch().Column(0).(*array.List)
			for i := range list.Len() {
				from, to := list.ValueOffsets(i)
				var ids []uint32
				for j := from; j < to; j++ {
					switch v := list.ListValues().(type) {
					case *array.Uint16:
						ids = append(ids, uint32(v.Value(int(j))))
					case *array.Int32:
						ids = append(ids, uint32(v.Value(int(j))))
					}
				}
				docs = append(docs, ids)
			}
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	return docs
}

func TestEveryFormatHoldsEveryDocument(t *testing.T) {
	for _, test := range []struct {
		name         string
		vocab, width int
		docs         corpus
	}{
		{"two bytes", 50257, 2, randomCorpus(1, 50257, 700, 40, 300)},
		{"too many ids for Megatron's two bytes", 65520, 4, randomCorpus(2, 65520, 300, 10, 100)},
		{"four bytes", 100277, 4, randomCorpus(3, 100277, 300, 10, 500)},
		{"a document longer than a piece", 50257, 2, randomCorpus(4, 50257, 3, 1, 400_000)},
		{"one split", 1000, 2, corpus{"train": {{1}, {2, 3}, {999}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			maxRow := 64
			if test.name == "a document longer than a piece" {
				maxRow = 300_000
			}
			d := makeDataset(t, test.vocab, maxRow, test.docs, shard.Schema{})
			out := t.TempDir()
			s := runExport(t, d, out, export.Formats...)
			for _, split := range s.Splits {
				want := test.docs[split.Name]
				if split.Documents != int64(len(want)) {
					t.Errorf("summary of %s: %+v", split.Name, split)
				}
				for _, f := range export.Formats {
					docs := want
					if f == export.NanoGPT {
						docs = [][]uint32{slices.Concat(want...)}
					}
					equalDocs(t, split.Name+" as "+f, readers[f](t, out, split.Name, test.width), docs)
				}
				sameFile(t, out, split.Name+".bin", split.Name+".ds", split.Name+".npy")
			}
			noTemporary(t, out)
		})
	}
}

func sameFile(t *testing.T, out string, names ...string) {
	t.Helper()
	first, err := os.Stat(filepath.Join(out, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[1:] {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || !os.SameFile(first, info) {
			t.Errorf("%s is not the file %s: %v", name, names[0], err)
		}
	}
}

func noTemporary(t *testing.T, out string) {
	t.Helper()
	for name := range tree(t, out) {
		if strings.Contains(name, ".tmp") {
			t.Errorf("%s is left", name)
		}
	}
}

func tree(t *testing.T, out string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(out, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(out, path)
			files[rel] = string(readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestInterruptedExportIsRepeated stops an export at several rows and repeats it.
func TestInterruptedExportIsRepeated(t *testing.T) {
	d := makeDataset(t, 50257, 64, randomCorpus(5, 50257, 3000, 1200, 40), shard.Schema{})
	whole := t.TempDir()
	runExport(t, d, whole, export.Formats...)
	want := tree(t, whole)
	out := t.TempDir()
	for stop := range int64(3) {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := export.Run(ctx, d, export.Options{Formats: export.Formats, Out: out, Decode: decodeForTest,
			Progress: func(rows, _ int64) {
				if rows >= 1024*stop {
					cancel()
				}
			}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d windows: %v", stop, err)
		}
		noTemporary(t, out)
	}
	for range 2 {
		runExport(t, d, out, export.Formats...)
		got := tree(t, out)
		for name, data := range want {
			if got[name] != data {
				t.Errorf("%s differs", name)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("%s is too much", name)
		}
	}
}

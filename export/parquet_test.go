package export_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/shard"
)

// readParquet reads SPLIT.parquet with the reader that builds use, which is tested against pyarrow's
// files.
func readParquet(t *testing.T, out, split string, _ int) (docs [][]uint32) {
	data := readFile(t, out, split+".parquet")
	f, err := columnar.OpenParquet(bytes.NewReader(data), int64(len(data)), columnar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRows()
	defer r.Close()
	for g := range f.Groups() {
		if err := r.Seek(g); err != nil {
			t.Fatal(err)
		}
		for {
			err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			object, err := r.AppendJSON(nil, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			var row struct {
				InputIDs []uint32 `json:"input_ids"`
				LossMask []bool   `json:"loss_mask"`
			}
			if err := json.Unmarshal(object.JSON, &row); err != nil || row.LossMask != nil &&
				len(row.LossMask) != len(row.InputIDs) {
				t.Fatalf("%.80s: %v", object.JSON, err)
			}
			docs = append(docs, row.InputIDs)
		}
	}
	return docs
}

// TestMoreIdsThanADictionaryHas writes pages before, while and after the dictionary of a row group
// is full, ids that are greater than any that it takes, and another row group.
func TestMoreIdsThanADictionaryHas(t *testing.T) {
	few, many, huge := make([]uint32, 300_000), make([]uint32, 300_000), make([]uint32, 9)
	for i := range many {
		few[i], many[i] = uint32(i%7), uint32(i)
	}
	for i := range huge {
		huge[i] = 1<<20 - 4 + uint32(i)
	}
	docs := corpus{"train": {few, many, {3}, few, few, few, few, few, few}, "val": {huge, {1}}}
	d := makeDataset(t, 2<<20, 1<<20, docs, shard.Schema{})
	out := t.TempDir()
	runExport(t, d, out, export.Parquet)
	for split, want := range docs {
		equalDocs(t, split, readParquet(t, out, split, 4), want)
	}
}

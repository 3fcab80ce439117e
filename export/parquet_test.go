package export_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/columnar"
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
			object, _, err := r.AppendJSON(nil, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			var row struct {
				InputIDs []uint32 `json:"input_ids"`
				LossMask []bool   `json:"loss_mask"`
			}
			if err := json.Unmarshal(object, &row); err != nil || row.LossMask != nil &&
				len(row.LossMask) != len(row.InputIDs) {
				t.Fatalf("%.80s: %v", object, err)
			}
			docs = append(docs, row.InputIDs)
		}
	}
	return docs
}

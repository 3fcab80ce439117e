package job

import (
	"slices"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source"
)

// TestAddRows: rows of documents that are alike lie back to back in a block, others in the place of their ids.
func TestAddRows(t *testing.T) {
	j := new(Job)
	made := [][]int32{{4}, {3, 2}, {25}, nil, {2}, {1}, {1}, {22}}
	for i := range made {
		d := j.AddDocument(8)
		d.Record = source.Record{Ordinal: int64(i), Row: int64(i) + 5}
		d.IDs, d.TextBytes = Span{len(j.IDs), len(j.IDs) + 10}, 3
		j.IDs = append(j.IDs, make([]uint32, 10)...)
		d.Markup = i == 6
		if i == 4 {
			d.Replaced = 1
		}
	}
	j.IDs = append(j.IDs, 0) // room behind the last one's
	for i, rows := range made {
		data := make([]byte, 0, 64)
		for _, n := range rows {
			data = append(data, make([]byte, 2*n)...)
		}
		for k := range data {
			data[k] = byte(i + 1)
		}
		if len(rows) > 0 {
			j.AddRows(i, data, rows, nil, len(data)/2, Cuts{Truncated: int64(i)})
		}
	}
	var places []Span
	for i := range j.Documents {
		m := &j.Documents[i].Made
		places = append(places, m.Bytes)
		for _, b := range m.RowBytes(j) {
			if b != byte(i+1) {
				t.Errorf("document %d: %v", i, m.RowBytes(j))
				break
			}
		}
	}
	// The third document's row is longer than its ids: those before it left room.
	if want := []Span{{0, 8}, {8, 18}, {18, 68}, {}, {160, 164}, {200, 202}, {240, 242}, {280, 324}}; !slices.Equal(places, want) {
		t.Errorf("rows at %v, want %v", places, want)
	}
	var blocks []Span
	for _, b := range j.Blocks {
		blocks = append(blocks, Span{b.From, b.To})
	}
	if want := []Span{{0, 3}, {5, 6}, {6, 7}, {7, 8}}; !slices.Equal(blocks, want) {
		t.Fatalf("blocks %v, want %v", blocks, want)
	}
	first := j.Blocks[0]
	if want := (Block{From: 0, To: 3, Made: Made{Bytes: Span{0, 68}, Rows: Span{0, 4}, Cuts: Cuts{Truncated: 3}}, Tokens: 34, Loss: 34,
		TextIDs: 30, TextBytes: 9, Unused: true}); first != want {
		t.Errorf("%+v, want %+v", first, want)
	}
	if !slices.Equal(j.Lengths[:4], []int32{4, 3, 2, 25}) || !slices.Equal(j.Parts[:4], []int32{0, 0, 1, 0}) {
		t.Errorf("rows of %v tokens, parts %v", j.Lengths, j.Parts)
	}
	var apart []int
	for i := range j.Apart {
		apart = append(apart, i)
	}
	if want := []int{3, 4}; !slices.Equal(apart, want) {
		t.Errorf("apart %v, want %v", apart, want)
	}
}

// TestAddRowsWithoutRoom: rows that take more room than there is are not made, and neither are too many.
func TestAddRowsWithoutRoom(t *testing.T) {
	for _, last := range []bool{true, false} {
		j := &Job{IDs: make([]uint32, 5), Mask: make([]bool, 4)}
		j.AddDocument(3)
		j.AddDocument(3)
		if !last { // the next one's begin there
			j.AddDocument(3)
			j.Documents[2].IDs, j.Documents[2].Mask = Span{5, 7}, Span{4, 6}
			j.IDs, j.Mask = append(j.IDs, 0, 0), append(j.Mask, false, false)
		}
		d := &j.Documents[0]
		d.IDs, d.Mask = Span{1, 3}, Span{1, 3}
		j.AddRows(0, make([]byte, WorstIDBytes*4+1), []int32{4}, nil, 4, Cuts{})
		j.AddRows(0, make([]byte, 8), []int32{4}, make([]bool, 4), 4, Cuts{})
		j.AddRows(0, make([]byte, 8), make([]int32, MaxRows+1), nil, 4, Cuts{})
		if d.Made != (Made{}) || len(j.Blocks) > 0 || len(j.Lengths) > 0 {
			t.Errorf("made %+v, blocks %v", d.Made, j.Blocks)
		}
		if j.AddRows(0, make([]byte, WorstIDBytes*4), []int32{4}, make([]bool, 3), 4, Cuts{}); len(j.Blocks) != 1 {
			t.Error("rows for which there is room were not made")
		}
	}
}

package serve

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/dsload/dsload/shard"
)

// TestFlipsAreNotServed checks that a server never sends a flipped bit of a shard: the rows that a
// client gets are right, and the stream ends with an error. DSLOAD_FLIPS sets the number of flips.
func TestFlipsAreNotServed(t *testing.T) {
	flips := 60
	if text := os.Getenv("DSLOAD_FLIPS"); text != "" {
		var err error
		if flips, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	schema := shard.Schema{VocabSize: 50257, Labels: true, LossMask: true, Segments: true}
	rows := randomRows(300, schema, 8)
	dir := rows.write(t, t.TempDir(), schema, 8<<10)
	shards, err := filepath.Glob(filepath.Join(dir, "*.arrow"))
	if err != nil || len(shards) < 3 {
		t.Fatal(shards, err)
	}
	rnd := rand.New(rand.NewPCG(4, 4))
	served := 0
	for i := range flips {
		path := shards[rnd.IntN(len(shards))]
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at, bit := rnd.IntN(len(data)), byte(1)<<rnd.IntN(8)
		data[at] ^= bit
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		labels := []string{"causal", "seq2seq"}[i%2]
		query := fmt.Sprintf("epochs=1&batch_size=16&borders=keep&labels=%s&shuffle=%s&bucket=%d", labels,
			[]string{"none", "full"}[i/2%2], i/4%2*64)
		t.Run(fmt.Sprintf("%s byte %d bit %#x %s", filepath.Base(path), at, bit, query), func(t *testing.T) {
			batches, err := fetch(serveDir(t, dir), query)
			if err == nil {
				t.Error("the stream ended as if it were whole")
			}
			for _, b := range batches {
				served += len(b.example)
				rows.compare(t, b, labels)
			}
		})
		data[at] ^= bit
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d flips: %d rows came, all right", flips, served)
}

// compare compares a batch with the rows that it names.
func (rows memoryRows) compare(t *testing.T, b wireBatch, labels string) {
	t.Helper()
	for i, example := range b.example {
		want, n := rows[example], int(b.length[i])
		ids := make([]int64, 0, len(want.InputIDs))
		for _, id := range want.InputIDs {
			ids = append(ids, int64(id))
		}
		if !slices.Equal(b.columns["input_ids"][i][:n], ids) {
			t.Errorf("input_ids of row %d are wrong", example)
		}
		var targets, have []int64
		if labels == "seq2seq" {
			for _, id := range want.Labels {
				targets = append(targets, int64(id))
			}
		} else {
			for j, id := range ids {
				if want.LossMask[j] {
					targets = append(targets, id)
				}
			}
		}
		for _, id := range b.columns["labels"][i] {
			if id != -100 {
				have = append(have, id)
			}
		}
		if !slices.Equal(have, targets) {
			t.Errorf("labels of row %d are wrong", example)
		}
	}
}

package serve

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// fetchPage reads a page of the server.
func fetchPage(t *testing.T, client *http.Client, path string) (*http.Response, []byte) {
	t.Helper()
	resp, err := client.Get("http://dsload" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// rebuilt replaces the dataset in dir by rows, as build --overwrite does: it removes the old files,
// the manifest first.
func (rows memoryRows) rebuilt(t *testing.T, dir string, schema shard.Schema) {
	t.Helper()
	for _, name := range []string{shardfile.ManifestName, "*"} {
		files, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows.write(t, dir, schema, 8<<10)
}

// TestReplacedDatasetEndsStreams rebuilds a dataset while it is served, with the same shape or
// another. Streams end with an error, and none of their rows is the new dataset's. New requests are
// refused with the reason and what to do.
func TestReplacedDatasetEndsStreams(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	for name, seed := range map[string]uint64{"another shape": 12, "the same shape": 0} {
		t.Run(name, func(t *testing.T) {
			old := randomRows(2000, schema, 11)
			fresh := randomRows(1500, schema, seed)
			if seed == 0 { // every row has as many tokens as before, so that every file has its old size
				fresh = make(memoryRows, len(old))
				for i, e := range old {
					ids := make([]uint32, len(e.InputIDs))
					for j, id := range e.InputIDs {
						ids[j] = (id + 1) % 50257
					}
					fresh[i] = dataset.Example{InputIDs: ids, Document: e.Document}
				}
			}
			dir := old.write(t, t.TempDir(), schema, 8<<10)
			client := serveDir(t, dir)
			seal, manifest := fetchPage(t, client, "/v1/dataset")
			resp, err := client.Get("http://dsload/v1/batches?shuffle=none&batch_size=4&epochs=0")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			fresh.rebuilt(t, dir, schema)
			n := 0
			err = eachRow(resp.Body, func(example int64, ids []int64) {
				n++
				for i, id := range ids {
					if want := old[example].InputIDs; len(ids) != len(want) || int64(want[i]) != id {
						t.Fatalf("row %d (example %d) is not of the dataset that the stream began with", n, example)
					}
				}
			})
			if !errors.Is(err, io.ErrUnexpectedEOF) || n == 0 {
				t.Errorf("the stream ended after %d rows with %v", n, err)
			}
			for _, path := range []string{"/v1/batches", "/v1/dataset"} {
				resp, body := fetchPage(t, client, path)
				if resp.StatusCode != 409 || !contains(string(body), "rebuilt", "start the server again") ||
					resp.Header.Get(feed.SealHeader) != seal.Header.Get(feed.SealHeader) {
					t.Errorf("%s: %s %s", path, resp.Status, body)
				}
			}
			if resp, body := fetchPage(t, client, "/healthz"); resp.StatusCode != 503 ||
				!contains(string(body), "rebuilt") {
				t.Errorf("health: %s %s", resp.Status, body)
			}
			again, now := fetchPage(t, serveDir(t, dir), "/v1/dataset")
			if again.StatusCode != 200 || bytes.Equal(now, manifest) ||
				again.Header.Get(feed.SealHeader) == seal.Header.Get(feed.SealHeader) {
				t.Error("a new server has the old seal")
			}
		})
	}
}

// TestTouchedManifestIsStillServed checks that the same bytes in another file are the same dataset,
// and that a missing manifest is none.
func TestTouchedManifestIsStillServed(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	dir := randomRows(50, schema, 13).write(t, t.TempDir(), schema, 8<<10)
	r, err := Open(Options{Datasets: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := filepath.Join(dir, shardfile.ManifestName)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := r.compareManifests(); err != nil {
		t.Errorf("touched: %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := r.compareManifests(); err != nil {
		t.Errorf("copied: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var re *feed.RequestError
	if err := r.current.get(r.compareManifests, 0); !errors.As(err, &re) || re.Status != 409 || re.Hint == "" {
		t.Errorf("removed: %v", err)
	}
	if err := os.Rename(path+".old", path); err != nil {
		t.Fatal(err)
	}
	if err := r.current.get(r.compareManifests, 0); err == nil {
		t.Error("once replaced, the shards may be others: it must not be served again")
	}
}

// TestManifestIsServedByteForByte checks that one dataset's manifest comes byte for byte, and
// several under their names. The seal identifies them all, in their order.
func TestManifestIsServedByteForByte(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	a := randomRows(50, schema, 14).write(t, t.TempDir(), schema, 8<<10)
	b := randomRows(60, schema, 15).write(t, t.TempDir(), schema, 8<<10)
	read := func(dir string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, shardfile.ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sealIn := func(data []byte) string {
		var m struct{ BLAKE3 string }
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		return m.BLAKE3
	}
	resp, body := fetchPage(t, serveDir(t, a), "/v1/dataset")
	if !bytes.Equal(body, read(a)) || resp.Header.Get(feed.SealHeader) != sealIn(body) ||
		resp.ContentLength != int64(len(body)) {
		t.Errorf("%d bytes under the seal %s", len(body), resp.Header.Get(feed.SealHeader))
	}
	client := serveDir(t, "z="+a, "b="+b)
	sum := blake3.Sum256([]byte(fmt.Sprintf("z %s\nb %s\n", sealIn(read(a)), sealIn(read(b)))))
	for path, want := range map[string][]byte{"/v1/dataset?name=z": read(a), "/v1/dataset?name=b": read(b)} {
		if resp, body := fetchPage(t, client, path); !bytes.Equal(body, want) ||
			resp.Header.Get(feed.SealHeader) != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %s, seal %s", path, resp.Status, resp.Header.Get(feed.SealHeader))
		}
	}
	_, body = fetchPage(t, client, "/v1/dataset")
	var all struct{ Datasets map[string]json.RawMessage }
	if err := json.Unmarshal(body, &all); err != nil || len(all.Datasets) != 2 ||
		sealIn(all.Datasets["b"]) != sealIn(read(b)) {
		t.Errorf("%v: %.200s", err, body)
	}
	if resp, _ := fetchPage(t, client, "/v1/dataset?name=c"); resp.StatusCode != 404 {
		t.Error(resp.Status)
	}
}

// TestIDBeyondVocabularyIsNeverSent checks that an id outside the vocabulary, however it got into
// the file, is never sent. The stream breaks before its batch, and asking again says where it is.
func TestIDBeyondVocabularyIsNeverSent(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	rows := make(memoryRows, 200)
	for i := range rows {
		rows[i] = dataset.Example{InputIDs: []uint32{40000, 40001, 40002, uint32(i)}, Document: int64(i)}
	}
	dir := rows.write(t, t.TempDir(), schema, 1<<20)
	path := filepath.Join(dir, "train-00000.arrow")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte{0x42, 0x9c, 150, 0}) // the 40002 of row 150
	if at < 0 {
		t.Fatal("row 150 is not found")
	}
	data[at], data[at+1] = 0xff, 0xff
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	client := serveDir(t, dir)
	batches, err := fetch(client, "shuffle=none&batch_size=10")
	if err == nil {
		t.Fatal("no error")
	}
	for _, b := range batches {
		for _, e := range b.example {
			if e >= 150 {
				t.Errorf("row %d was sent", e)
			}
		}
	}
	if _, err := fetch(client, "shuffle=none&batch_size=10&start=150"); err == nil ||
		!contains(err.Error(), "train-00000.arrow") {
		t.Errorf("asking again: %v", err)
	}
	for _, query := range []string{
		"labels=none&start=140", "start=3&world=2&rank=0",
		"pack=wrapped&max_length=16", "pack=bfd&max_length=16&labels=causal",
	} {
		if _, err := fetch(client, "shuffle=none&batch_size=10&"+query); err == nil {
			t.Errorf("%s: no error", query)
		}
	}
	// The id of padding must be in the vocabulary too.
	if got := padID(map[string]int64{"pad": 50257, "eos": 50256}, 50257); got != 50256 {
		t.Errorf("padding id %d", got)
	}
}

// TestLabelsComeFromTheDataset checks that without labels= a dataset with targets sends them, and
// one without sends the ids. So does a mix, whose parts have the same columns.
func TestLabelsComeFromTheDataset(t *testing.T) {
	for name, schema := range schemas {
		rows := randomRows(50, schema, 16)
		dir := rows.write(t, t.TempDir(), schema, 8<<10)
		want := "causal"
		if schema.Labels {
			want = "seq2seq"
		}
		for _, client := range []*http.Client{serveDir(t, dir), serveDir(t, "a="+dir, "b="+dir)} {
			left, err := fetch(client, "batch_size=7")
			if err != nil {
				t.Fatal(err)
			}
			right, err := fetch(client, "batch_size=7&labels="+want)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(left) != fmt.Sprint(right) || len(left) == 0 {
				t.Errorf("%s: the default differs from labels=%s", name, want)
			}
		}
	}
}

// TestQueriesThatGiveNothing checks that queries that would give nothing, now or ever, are refused
// with what to do.
func TestQueriesThatGiveNothing(t *testing.T) {
	schema := shard.Schema{VocabSize: 50257}
	client := serveDir(t, randomRows(10, schema, 17).write(t, t.TempDir(), schema, 8<<10))
	for query, says := range map[string]string{
		"world=11&batch_size=1": "whole step of 11 ranks", "world=2&batch_size=6": "whole step",
		"batch_size=12&tail=drop":                        "one whole step, and tail=drop",
		"world=2&batch_size=6&epochs=0":                  "whole step",
		"world=3&rank=2&batch_size=5&tail=keep&epochs=0": "none for rank 2", "world=4&max_tokens=4000": "whole step",
		"start=11": "start", "epochs=3&start=31": "start", "split=val": "max-val-examples",
		"split=test": "it has train",
	} {
		resp, body := fetchPage(t, client, "/v1/batches?"+query)
		var answer struct{ Error, Hint string }
		if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != 400 ||
			!contains(answer.Error+" "+answer.Hint, says) || answer.Hint == "" {
			t.Errorf("%s: %s %s", query, resp.Status, body)
		}
	}
	for _, query := range []string{"start=10", "world=2&batch_size=5&start=10",
		"world=3&rank=2&batch_size=5&tail=keep"} {
		if batches, err := fetch(client, query); err != nil || len(batches) != 0 {
			t.Errorf("%s: %d batches, %v", query, len(batches), err)
		}
	}
}

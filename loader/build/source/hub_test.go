package source

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/dsload/dsload/loader/remote/remotetest"
)

func setHubEnv(t *testing.T, h *remotetest.Hub) {
	t.Helper()
	for _, e := range h.Env(t.TempDir()) {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

const card = `---
license: mit
configs:
- config_name: raw
  data_files:
  - split: test
    path: raw/test-*
  - split: train
    path: raw/train-*
- config_name: sample
  data_files:
  - split: train
    path: ["parts/0*.jsonl", "parts/{a,b}.jsonl"]
- config_name: all
  data_files: "parts/*.jsonl"
dataset_info:
- config_name: raw
---
# A card
`

// Which files of a dataset are read where the address names none.
func TestHubChoosesFiles(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	setHubEnv(t, h)
	repos := map[string][]string{
		"plain": {"README.md", ".gitattributes", "data/train-00000-of-00002.jsonl",
			"data/train-00001-of-00002.jsonl", "data/validation-00000-of-00001.jsonl",
			"data/test-00000-of-00001.jsonl"},
		"folders":  {"en/train/0.jsonl", "en/test/0.jsonl", "de/train/0.jsonl", "de/dev/0.jsonl"},
		"nosplits": {"en/a.jsonl", "en/b.jsonl", "latest.jsonl"},
		"kinds":    {"a.jsonl", "b.jsonl", "script.py", "table.csv"},
		"tests":    {"test.jsonl", "dev.jsonl"},
		"card": {"raw/test-0.jsonl", "raw/train-0.jsonl", "parts/00.jsonl", "parts/01.jsonl", "parts/10.jsonl",
			"parts/a.jsonl", "parts/b.jsonl"},
	}
	for name, files := range repos {
		tree := map[string]string{}
		for _, f := range files {
			tree[f] = fmt.Sprintf("{\"text\": %q}\n", f)
		}
		if name == "card" {
			tree["README.md"] = card
		}
		h.Add("datasets/acme/"+name, "main", 1, tree)
	}
	for _, c := range []struct {
		args    string
		include string
		want    string
		note    string
	}{
		{"plain", "", "data/train-00000-of-00002.jsonl data/train-00001-of-00002.jsonl",
			"left out 1 of test, 1 of validation"},
		{"plain/data", "", "data/train-00000-of-00002.jsonl data/train-00001-of-00002.jsonl",
			"left out 1 of test, 1 of validation"},
		{"plain/data/test*", "", "data/test-00000-of-00001.jsonl", ""},
		{"plain", "*validation*", "data/validation-00000-of-00001.jsonl", ""},
		{"plain/data/test-00000-of-00001.jsonl", "", "data/test-00000-of-00001.jsonl", ""},
		{"folders", "", "de/train/0.jsonl en/train/0.jsonl", "left out 1 of test, 1 of validation"},
		{"folders/en/test", "", "en/test/0.jsonl", ""},
		{"folders/**/0.jsonl", "", "de/dev/0.jsonl de/train/0.jsonl en/test/0.jsonl en/train/0.jsonl", ""},
		{"nosplits", "", "en/a.jsonl en/b.jsonl latest.jsonl", ""},
		{"kinds", "", "a.jsonl b.jsonl", "left out 2 of other kinds"},
		{"tests", "", "dev.jsonl test.jsonl", ""},
		{"card", "", "raw/train-0.jsonl", "read its configuration raw of 3 (raw, sample, all); name another as hf://datasets/acme/card/sample"},
		{"card/sample", "", "parts/00.jsonl parts/01.jsonl parts/a.jsonl parts/b.jsonl", ""},
		{"card/all", "", "parts/00.jsonl parts/01.jsonl parts/10.jsonl parts/a.jsonl parts/b.jsonl", ""},
		{"card/raw", "", "raw/train-0.jsonl", "left out 1 of test"},
	} {
		o := Options{Args: []string{"hf://datasets/acme/" + c.args}}
		if c.include != "" {
			o.Include = []string{c.include}
		}
		set, err := Open(context.Background(), o)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		var got []string
		for _, in := range inputsOf(t, set) {
			_, name, _ := strings.Cut(strings.TrimPrefix(in.URI, "hf://datasets/acme/"), "/")
			got = append(got, name)
			if in.Revision != remotetest.Commit(1) || in.Format != JSONL {
				t.Errorf("%s: %+v", c.args, in)
			}
		}
		notes := strings.Join(set.Notes(), "\n")
		if strings.Join(got, " ") != c.want || !strings.Contains(notes, c.note) || c.note == "" &&
			strings.Contains(notes, "split") {
			t.Errorf("%s: %v, want %s; notes: %s", c.args, got, c.want, notes)
		}
		set.Close()
	}
	for arg, want := range map[string]error{"hf://datasets/acme/none": fs.ErrNotExist,
		"hf://datasets/acme/plain/none": fs.ErrNotExist, "hf://datasets/acme/plain/none*": fs.ErrNotExist,
		"hf://datasets/acme/plain@v1": fs.ErrNotExist, "hf://spaces/a/b": ErrUsage} {
		if _, err := Open(context.Background(), Options{Args: []string{arg}}); !errors.Is(err, want) ||
			!strings.Contains(err.Error(), arg) {
			t.Errorf("%s: %v, want %v", arg, err, want)
		}
	}
}

// A large dataset is listed without looking at every file, and read with bounded memory.
func TestHubManyFiles(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	setHubEnv(t, h)
	h.Page = 500
	tree := map[string]string{}
	for i := range maxListed + 200 {
		tree[fmt.Sprintf("part-%05d.jsonl", i)] = fmt.Sprintf("{\"text\": \"document %d\"}\n", i)
	}
	h.Add("datasets/acme/many", "main", 5, tree)
	set := openSet(t, Options{Args: []string{"hf://datasets/acme/many"}})
	defer set.Close()
	if n := len(h.Store.Requests()); n > maxLooked || set.Len() != len(tree) {
		t.Errorf("%d requests for files, %d inputs", n, set.Len())
	}
	if known := set.Known(); len(known) != 1 || known[0].Revision != remotetest.Commit(5) {
		t.Errorf("%+v", known)
	}
	in, err := set.Input(maxListed + 100)
	if err != nil || in.Hash == "" || in.Revision != remotetest.Commit(5) || in.ETag == "" {
		t.Errorf("%+v, %v", in, err)
	}
	records, err := readFrom(t, set, Position{Input: maxListed + 190, Ordinal: 1})
	if err != nil || len(records) != 10 || records[9].data != strings.TrimSuffix(tree[fmt.Sprintf("part-%05d.jsonl",
		maxListed+199)], "\n") {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// What the Hub announced of a file is compared with its bytes, plain or compressed, and after going
// on in the middle.
func TestHubHashes(t *testing.T) {
	text := numbered(40_000)
	for name, data := range map[string]string{"a.txt": text, "a.txt.gz": gzipped(text)} {
		h := remotetest.NewHub()
		setHubEnv(t, h)
		h.Add("datasets/acme/docs", "main", 1, map[string]string{name: data})
		o := Options{Args: []string{"hf://datasets/acme/docs/" + name}}
		set := openSet(t, o)
		records, err := readFrom(t, set, Position{})
		if err != nil || len(records) != 40_000 {
			t.Fatalf("%s: %d records, %v", name, len(records), err)
		}
		middle := reread(t, records[20_000].next)
		if rest, err := readFrom(t, openSet(t, o), middle); err != nil || len(rest) != 19_999 {
			t.Errorf("%s: %d records after the middle, %v", name, len(rest), err)
		}
		damaged := []byte(data)
		at := len(damaged) - 9
		if strings.HasSuffix(name, ".gz") {
			at = 9 // the byte that names the system
		}
		damaged[at] ^= 1
		h.Show(name, string(damaged))
		h.Expire()
		set = openSet(t, o)
		for _, from := range []Position{{}, middle} {
			if _, err := readFrom(t, set, from); !errors.Is(err, ErrMismatch) {
				t.Errorf("%s from byte %d: %v", name, from.Offset, err)
			}
		}
		h.Close()
	}
}

func TestConfigsOf(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "# no head\n": "", "---\nlicense: mit\n---\n": "",
		card: card[strings.Index(card, "configs:"):strings.Index(card, "dataset_info:")],
		"---\r\nconfigs:\r\n- config_name: a\r\n---\r\n": "configs:\r\n- config_name: a\r\n",
	} {
		if got := string(configsOf([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSplitOf(t *testing.T) {
	for name, want := range map[string]string{"train.jsonl": "train", "my_train_file.txt": "train",
		"training-00000-of-00001.parquet": "train", "train_sft-0.parquet": "train",
		"latest.jsonl": "", "strain.txt": "", "val.csv": "validation", "dev_2.csv": "validation",
		"evaluation.csv": "test", "testing.txt": "test", "medieval.txt": "", "x": ""} {
		if got := splitOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A file that is read from its end is read in its parts, and not twice.
func TestHubZip(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a.txt", "b.txt"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(w, numbered(100_000))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	h := remotetest.NewHub()
	defer h.Close()
	setHubEnv(t, h)
	h.Add("datasets/acme/docs", "main", 1, map[string]string{"a.zip": b.String()})
	set := openSet(t, Options{Args: []string{"hf://datasets/acme/docs/a.zip"}})
	defer set.Close()
	before := h.Store.Sent()
	h.Store.Fail(remotetest.Fault{}, remotetest.Fault{Drop: 100_000}, remotetest.Fault{Status: 503})
	records, err := readFrom(t, set, Position{})
	got := ""
	for _, r := range records {
		got += r.data
	}
	if want := numbered(100_000); err != nil || got != want+want {
		t.Fatalf("%d bytes of text, %v", len(got), err)
	}
	if sent := h.Store.Sent() - before; sent > b.Len()*3/2 {
		t.Errorf("%d bytes were sent of a file of %d", sent, b.Len())
	}
}

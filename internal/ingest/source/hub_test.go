package source

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
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

const cardOfFolders = `---
configs:
- config_name: en
  data_dir: en
- config_name: rest
  data_dir: ./other/de
- config_name: chat
  data_files:
  - split: test_gen
    path: data/test_gen-*
  - split: train_sft
    path: data/train_sft-*
  - split: train_gen
    path: data/train_gen-*
- config_name: odd
  data_files:
  - split: second
    path: data/test_gen-*
  - split: first
    path: data/train_gen-*
- config_name: gone
  data_files: gone/*.jsonl
---
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
		"folders":    {"en/train/0.jsonl", "en/test/0.jsonl", "de/train/0.jsonl", "de/dev/0.jsonl"},
		"nosplits":   {"en/a.jsonl", "en/b.jsonl", "latest.jsonl"},
		"kinds":      {"a.jsonl", "b.jsonl", "script.py", "table.csv"},
		"tests":      {"test.jsonl", "dev.jsonl"},
		"oddfolders": {"train/0.jsonl", "train/1.jsonl", "test/test-0.jsonl", "train/dev.jsonl"},
		"tars":       {"0.tar", "1.tar", "index.csv"},
		"cardfolders": {"en/train.jsonl", "en/test.jsonl", "other/de/0.jsonl", "data/test_gen-0.jsonl",
			"data/train_sft-0.jsonl", "data/train_gen-0.jsonl"},
		"card": {"raw/test-0.jsonl", "raw/train-0.jsonl", "parts/00.jsonl", "parts/01.jsonl", "parts/10.jsonl",
			"parts/a.jsonl", "parts/b.jsonl"},
	}
	for name, files := range repos {
		tree := map[string]string{}
		for _, f := range files {
			tree[f] = fmt.Sprintf("{\"text\": %q}\n", f)
		}
		switch name {
		case "card":
			tree["README.md"] = card
		case "cardfolders":
			tree["README.md"] = cardOfFolders
		case "tars":
			for i, name := range []string{"0.tar", "1.tar"} {
				tree[name] = tarred(t, file{"a.jsonl", fmt.Sprintf("{\"text\": \"%d\"}\n", i)})
			}
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
		{"folders/**/0.jsonl", "", "de/dev/0.jsonl de/train/0.jsonl en/test/0.jsonl en/train/0.jsonl",
			"1 of test, 2 of train, 1 of validation"},
		{"nosplits", "", "en/a.jsonl en/b.jsonl latest.jsonl", ""},
		{"kinds", "", "a.jsonl b.jsonl", "left out 2 of other kinds"},
		{"tests", "", "dev.jsonl test.jsonl",
			"no name shows a split train; read everything, 1 of test, 1 of validation"},
		{"oddfolders", "", "train/0.jsonl train/1.jsonl", "left out 1 of test, 1 of validation"},
		{"tars", "", "0.tar 1.tar", "left out 1 of other kinds"},
		{"cardfolders", "", "en/train.jsonl", "left out 1 of test"},
		{"cardfolders/en", "", "en/train.jsonl", "left out 1 of test"},
		{"cardfolders/rest", "", "other/de/0.jsonl", ""},
		{"cardfolders/chat", "", "data/train_sft-0.jsonl",
			"there is no split train; read the split train_sft; left out test_gen, train_gen"},
		{"cardfolders/odd", "", "data/test_gen-0.jsonl",
			"there is no split train; read the split second; left out first"},
		{"cardfolders/data", "", "data/train_gen-0.jsonl data/train_sft-0.jsonl", "left out 1 of test"},
		{"card", "", "raw/train-0.jsonl",
			"read its configuration raw of 3 (raw, sample, all); name another as hf://datasets/acme/card/sample"},
		{"card/sample", "", "parts/00.jsonl parts/01.jsonl parts/a.jsonl parts/b.jsonl", ""},
		{"card/all", "", "parts/00.jsonl parts/01.jsonl parts/10.jsonl parts/a.jsonl parts/b.jsonl", ""},
		{"card/raw", "", "raw/train-0.jsonl", "left out test: name their files"},
		{"card/raw/", "", "raw/train-0.jsonl", "left out 1 of test"},
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
			if in.Revision != remotetest.Commit(1) || in.Format != JSONL && c.args != "tars" {
				t.Errorf("%s: %+v", c.args, in)
			}
		}
		notes := fault.Join(set.Notes(), "\n").String()
		if strings.Join(got, " ") != c.want || !strings.Contains(notes, c.note) || c.note == "" &&
			strings.Contains(notes, "split") {
			t.Errorf("%s: %v, want %s; notes: %s", c.args, got, c.want, notes)
		}
		set.Close()
	}
	for arg, want := range map[string]string{
		"cardfolders/gone": "its README.md names gone/*.jsonl as the files of its configuration gone, and there are none",
		"cardfolders/nope": "neither a folder nor a configuration of this name; name one of the configurations en, rest, chat, odd, gone",
	} {
		_, err := Open(context.Background(), Options{Args: []string{"hf://datasets/acme/" + arg}})
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	for arg, want := range map[string]error{"hf://datasets/acme/none": cause.Usage,
		"hf://datasets/acme/plain/none": cause.Usage, "hf://datasets/acme/plain/none*": fs.ErrNotExist,
		"hf://datasets/acme/plain@v1": cause.Usage, "hf://spaces/a/b": cause.Usage} {
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

// A revision may have slashes in its name, which addresses escape.
func TestHubRevisionWithSlash(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	setHubEnv(t, h)
	h.Add("datasets/acme/docs", "feature/100%", 7, map[string]string{"a.txt": "one\n", "b.txt": "two\n"})
	for arg, want := range map[string]string{"": "one two", "/a.txt": "one", "/*.txt": "one two"} {
		arg = "hf://datasets/acme/docs@feature%2F100%25" + arg
		set := openSet(t, Options{Args: []string{arg}})
		records, err := readFrom(t, set, Position{})
		var got []string
		for _, r := range records {
			got = append(got, r.data)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v", arg, got, err)
		}
		for _, in := range inputsOf(t, set) {
			if !strings.HasPrefix(in.URI, "hf://datasets/acme/docs@feature%2F100%25/") {
				t.Errorf("%s: %s", arg, in.URI)
			}
		}
		set.Close()
	}
}

// Without a network the cache is read, and a note says that it may not have everything.
func TestHubOffline(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	setHubEnv(t, h)
	t.Setenv("HF_HUB_OFFLINE", "1")
	folder := filepath.Join(os.Getenv("HF_HOME"), "hub", "datasets--acme--docs")
	for name, data := range map[string]string{"refs/main": remotetest.Commit(3),
		"snapshots/" + remotetest.Commit(3) + "/README.md": "---\nconfigs:\n- config_name: en\n  data_dir: en\n---\n",
		"snapshots/" + remotetest.Commit(3) + "/en/a.txt":  "one\n"} {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, []byte(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{"": "only files in the cache are read, 1 here",
		"/en":       "only files in the cache",
		"/en/a.txt": ""} {
		set := openSet(t, Options{Args: []string{"hf://datasets/acme/docs" + arg}})
		records, err := readFrom(t, set, Position{})
		notes := fault.Join(set.Notes(), "\n").String()
		if err != nil || len(records) != 1 || !strings.Contains(notes, want) || want == "" && notes != "" {
			t.Errorf("%q: %v, %v; notes: %s", arg, records, err, notes)
		}
		set.Close()
	}
	for _, arg := range []string{"/de", "/en/b.txt", "@v1"} {
		_, err := Open(context.Background(), Options{Args: []string{"hf://datasets/acme/docs" + arg}})
		if !errors.Is(err, remote.ErrUnreachable) || !strings.Contains(err.Error(), "HF_HUB_OFFLINE") {
			t.Errorf("%q: %v", arg, err)
		}
	}
	if n := len(h.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// What the Hub announced of a file is compared with its bytes, plain or compressed, and after going
// on in the middle.
func TestHubHashes(t *testing.T) {
	lines := effort.Of(10_000, 40_000, 40_000)
	text := numbered(lines)
	for name, data := range map[string]string{"a.txt": text, "a.txt.gz": gzipped(text)} {
		h := remotetest.NewHub()
		setHubEnv(t, h)
		h.Add("datasets/acme/docs", "main", 1, map[string]string{name: data})
		o := Options{Args: []string{"hf://datasets/acme/docs/" + name}}
		set := openSet(t, o)
		records, err := readFrom(t, set, Position{})
		if err != nil || len(records) != lines {
			t.Fatalf("%s: %d records, %v", name, len(records), err)
		}
		middle := reread(t, records[lines/2].next)
		if rest, err := readFrom(t, openSet(t, o), middle); err != nil || len(rest) != lines/2-1 {
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
			if _, err := readFrom(t, set, from); !errors.Is(err, remote.ErrMismatch) {
				t.Errorf("%s from byte %d: %v", name, from.Offset, err)
			}
		}
		h.Close()
	}
}

// A file that is read from its end is read in its parts, and not twice.
func TestHubZip(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a.md", "b.md"} {
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

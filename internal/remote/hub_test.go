package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/remote/remotetest"
)

// newHubStore returns a store whose Hub is a server of the test.
func newHubStore(t *testing.T, h *remotetest.Hub, env ...string) *Store {
	t.Helper()
	for _, e := range append(h.Env(t.TempDir()), env...) {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	return newStore(t, nil)
}

func describe1(t *testing.T, s *Store, uri string) Object {
	t.Helper()
	o, err := s.Describe(context.Background(), uri)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestHub(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	data := string(content(2*megabyte + 3))
	h.Add("datasets/acme/docs", "main", 1, map[string]string{"a/b.jsonl": data, "a/small.csv": "x\n1\n",
		"c d/é.txt": "text\n", "README.md": "no"})
	h.Add("datasets/acme/docs", "refs/convert/parquet", 2, map[string]string{"default/train/0.txt": "converted\n"})
	s := newHubStore(t, h)
	o := describe1(t, s, "hf://datasets/acme/docs/a/b.jsonl")
	if o.Revision != remotetest.Commit(1) || o.Size != int64(len(data)) || !strings.HasPrefix(o.Hash, "sha256:") {
		t.Errorf("%+v", o)
	}
	// everything that can happen to a file, on the Hub and at its store
	h.Fail(remotetest.Fault{Status: 500}, remotetest.Fault{Status: 429,
		Header: http.Header{"Ratelimit": {`"resolvers";r=0;t=0`}}})
	h.Store.Fail(remotetest.Fault{Drop: megabyte, Then: h.Expire}, remotetest.Fault{Status: 503},
		remotetest.Fault{Drop: 1000})
	if got, err := readFile(t, s, o, 0); err != nil || string(got) != data {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n := h.Left() + h.Store.Left(); n > 0 {
		t.Errorf("%d faults never came", n)
	}
	small := describe1(t, s, "hf://datasets/acme/docs/a/small.csv")
	if got, err := readFile(t, s, small, 2); err != nil || string(got) != "1\n" ||
		!strings.HasPrefix(small.Hash, "git-sha1:") {
		t.Errorf("%q, %+v, %v", got, small, err)
	}
	if got, err := readFile(t, s, describe1(t, s, "hf://datasets/acme/docs/c d/é.txt"), 0); err != nil ||
		string(got) != "text\n" {
		t.Errorf("%q, %v", got, err)
	}
	// a branch that moves changes nothing
	h.Add("datasets/acme/docs", "main", 3, map[string]string{"a/b.jsonl": "other\n"})
	if again := describe1(t, s, "hf://datasets/acme/docs/a/b.jsonl"); again != o {
		t.Errorf("%+v after the branch moved, want %+v", again, o)
	}
	for folder, want := range map[string]string{"hf://datasets/acme/docs": "README.md a/b.jsonl a/small.csv c d/é.txt",
		"hf://datasets/acme/docs/a/":                   "b.jsonl small.csv",
		"hf://datasets/acme/docs@refs/convert/parquet": "default/train/0.txt", "hf://datasets/acme/docs@" +
			remotetest.Commit(3): "a/b.jsonl"} {
		var names []string
		if err := s.List(context.Background(), folder, func(name string, o Object) error {
			names = append(names, name)
			return nil
		}); err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v", folder, names, err)
		}
	}
}

func TestHubRefusals(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	h.Token = "hf_secretToken"
	h.Add("datasets/acme/docs", "main", 1, map[string]string{"b.jsonl": "{}\n", "c.jsonl": string(content(1000))})
	for _, c := range []struct {
		token, uri string
		kind       error
		words      string
	}{
		{"", "hf://datasets/acme/docs/b.jsonl", ErrDenied, "gated"},
		{"hf_wrongSecret", "hf://datasets/acme/docs/b.jsonl", ErrDenied, "check HF_TOKEN"},
		{"hf_secretToken", "hf://datasets/acme/docs/none.jsonl", fs.ErrNotExist, ""},
		{"hf_secretToken", "hf://datasets/acme/docs@v9/b.jsonl", ErrNoBucket, "revision"},
		{"hf_secretToken", "hf://datasets/acme/none/b.jsonl", ErrNoBucket, "HF_TOKEN"},
		{"", "hf://spaces/acme/docs/b.jsonl", ErrUsage, "spaces"},
		{"", "hf://datasets/acme/docs@/b.jsonl", ErrUsage, "revision"},
		{"", "hf://", ErrUsage, "not the address of a repository"},
	} {
		s := newHubStore(t, h, "HF_TOKEN="+c.token)
		_, err := s.Describe(context.Background(), c.uri)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) ||
			strings.Contains(err.Error(), "ecret") {
			t.Errorf("%s with %q: %v", c.uri, c.token, err)
		}
	}
	tokens := t.TempDir() + "/token"
	if err := os.WriteFile(tokens, []byte("hf_secretToken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newHubStore(t, h, "HF_TOKEN_PATH="+tokens)
	o := describe1(t, s, "hf://datasets/acme/docs/c.jsonl")
	if got, err := readFile(t, s, o, 0); err != nil || len(got) != 1000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, r := range h.Store.Requests() {
		if r.Authorization != "" {
			t.Error("the token went to the store of large files")
		}
	}
	// what the store has is not what was announced
	h.Show("c.jsonl", "short")
	var changed *ChangedError
	if _, err := readFile(t, s, o, 1); !errors.As(err, &changed) {
		h.Expire() // the link is signed anew
		if _, err := readFile(t, s, o, 1); !errors.As(err, &changed) {
			t.Errorf("a shorter file: %v", err)
		}
	}
}

func TestHubCache(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	tokenizer := string(content(300_000))
	h.Add("models/acme/tok", "main", 7, map[string]string{"tokenizer.json": tokenizer, "config.json": "{}",
		"model.safetensors": "large"})
	s := newHubStore(t, h)
	wanted := func(name string, _ int64) bool { return strings.HasSuffix(name, ".json") }
	h.Store.Fail(remotetest.Fault{Drop: 100_000})
	dir, err := s.Download(context.Background(), "hf://acme/tok", wanted)
	if err != nil {
		t.Fatal(err)
	}
	home := os.Getenv("HF_HOME")
	repo := filepath.Join(home, "hub", "models--acme--tok")
	if want := filepath.Join(repo, "snapshots", remotetest.Commit(7)); dir != want {
		t.Errorf("%s, want %s", dir, want)
	}
	got, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil || string(got) != tokenizer {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	ref, err := os.ReadFile(filepath.Join(repo, "refs", "main"))
	blobs, _ := filepath.Glob(filepath.Join(repo, "blobs", "*"))
	link, linkErr := os.Readlink(filepath.Join(dir, "config.json"))
	if err != nil || string(ref) != remotetest.Commit(7) || len(blobs) != 2 || linkErr != nil ||
		!strings.HasPrefix(link, "../../blobs/") {
		t.Errorf("ref %q, %v; blobs %v; link %q, %v", ref, err, blobs, link, linkErr)
	}
	// what is there is not fetched again, with a network or without
	sent := h.Store.Sent()
	if _, err := s.Download(context.Background(), "hf://acme/tok", wanted); err != nil || h.Store.Sent() != sent {
		t.Errorf("%v; %d bytes sent again", err, h.Store.Sent()-sent)
	}
	o := describe1(t, s, "hf://acme/tok/tokenizer.json")
	if got, err := readFile(t, s, o, 5); err != nil || !bytes.Equal(got, []byte(tokenizer[5:])) ||
		h.Store.Sent() != sent {
		t.Errorf("%d bytes, %v; %d bytes sent", len(got), err, h.Store.Sent()-sent)
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	offline := newStore(t, nil)
	if cached := describe1(t, offline, "hf://acme/tok/tokenizer.json"); cached != o {
		t.Errorf("offline %+v, want %+v", cached, o)
	}
	if again, err := offline.Download(context.Background(), "hf://acme/tok", wanted); err != nil || again != dir {
		t.Errorf("offline: %s, %v", again, err)
	}
	if _, err := offline.Download(context.Background(), "hf://acme/other", wanted); !errors.Is(err, ErrUnreachable) {
		t.Errorf("not in the cache: %v", err)
	}
	t.Setenv("HF_HUB_OFFLINE", "")
	h.Close()
	gone, notice := newStore(t, nil), ""
	gone.opts.Notice = func(text string) { notice += text }
	if again, err := gone.Download(context.Background(), "hf://acme/tok", wanted); err != nil || again != dir ||
		!strings.Contains(notice, "the copy in") {
		t.Errorf("without a network: %s, %v, %q", again, err, notice)
	}
}

// TestHubDownloadIsChecked checks that a download whose bytes are not the announced ones never
// reaches the cache.
func TestHubDownloadIsChecked(t *testing.T) {
	h := remotetest.NewHub()
	defer h.Close()
	h.Add("models/acme/tok", "main", 7, map[string]string{"tokenizer.json": "right"})
	h.Show("tokenizer.json", "wrong")
	s := newHubStore(t, h)
	_, err := s.Download(context.Background(), "hf://acme/tok", func(string, int64) bool { return true })
	if !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	h.Show("tokenizer.json", "right")
	h.Expire()
	dir, err := s.Download(context.Background(), "hf://acme/tok", func(string, int64) bool { return true })
	if got, readErr := os.ReadFile(filepath.Join(dir, "tokenizer.json")); err != nil || readErr != nil ||
		string(got) != "right" {
		t.Errorf("%q, %v, %v", got, err, readErr)
	}
}

func TestParseHub(t *testing.T) {
	for address, want := range map[string]hubPath{
		"hf://datasets/a/b":                      {"datasets", "a/b", "", ""},
		"hf://datasets/a/b/c/d.txt":              {"datasets", "a/b", "", "c/d.txt"},
		"hf://datasets/a/b@v1/c/":                {"datasets", "a/b", "v1", "c"},
		"hf://datasets/a/b@refs/pr/12/c":         {"datasets", "a/b", "refs/pr/12", "c"},
		"hf://datasets/a/b@refs/convert/parquet": {"datasets", "a/b", "refs/convert/parquet", ""},
		"hf://datasets/a/b@feature%2Fx/c":        {"datasets", "a/b", "feature/x", "c"},
		"hf://a/b":                               {"models", "a/b", "", ""},
		"hf://models/a/b@main":                   {"models", "a/b", "main", ""},
		"hf://gpt2":                              {"models", "gpt2", "", ""},
		"hf://datasets/squad@v1":                 {"datasets", "squad", "v1", ""},
	} {
		if got, err := parseHub(address); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", address, got, err, want)
		}
	}
	for _, address := range []string{"hf://", "hf://datasets/", "hf://a b/c", "hf://datasets/a/b@",
		"hf://datasets/a/b@/c", "hf://buckets/a/b", "hf://a/../b"} {
		if got, err := parseHub(address); !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
}

// TestHubSizeBelowZero checks that a size which no file has is an error of the download.
func TestHubSizeBelowZero(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/tree/") {
			fmt.Fprint(w, `[{"type": "file", "oid": "`+remotetest.Commit(1)+`", "size": -1, "path": "tokenizer.json"}]`)
			return
		}
		fmt.Fprintf(w, `{"sha": %q}`, remotetest.Commit(1))
	}))
	defer server.Close()
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_HOME", t.TempDir())
	_, err := newStore(t, nil).Download(context.Background(), "hf://acme/tok", func(string, int64) bool { return true })
	if !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
}

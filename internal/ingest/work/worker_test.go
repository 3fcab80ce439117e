package work

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

func newWorker(t *testing.T) (*Worker, *tokenize.Tokenizer) {
	t.Helper()
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	f, err := example.NewFormatter(example.FormatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := New(Config{Tokenizer: tok, CacheBytes: 256 << 10, AsIs: true, Skip: func(*job.Document) bool { return false }})
	w.Begin(f, false, nil)
	return w, tok
}

// TestBeginning: a text that a budget of bytes cuts ends with a whole character.
func TestBeginning(t *testing.T) {
	w, tok := newWorker(t)
	text := []byte("a é 漢 😀 z")
	d := &job.Document{Record: source.Record{Record: frame.Record{Decoded: true, First: true, Last: true}}}
	for n := range len(text) {
		want := n
		for !utf8.RuneStart(text[want]) {
			want--
		}
		ids, got, err := w.Beginning(d, text, n)
		if err != nil || got != int64(want) || !slices.Equal(ids, tok.Encode(string(text[:want]))) {
			t.Errorf("%d bytes: %d of them, %v, %v", n, got, ids, err)
		}
	}
}

// TestDo: what is wrong with a record is noted in its document, and the others are tokenized.
func TestDo(t *testing.T) {
	w, tok := newWorker(t)
	j := new(job.Job)
	for _, text := range []string{"one", `{"text": 5}`, "three"} {
		d := j.AddDocument(0)
		d.Record = source.Record{Record: frame.Record{Decoded: text[0] != '{', First: true, Last: true}}
		d.Raw.Start = len(j.Raw)
		j.Raw = append(j.Raw, text...)
		d.Raw.End = len(j.Raw)
	}
	if !w.Do(j) || j.Documents[1].Bad == nil {
		t.Fatalf("%+v", j.Documents)
	}
	for i, text := range map[int]string{0: "one", 2: "three"} {
		d := &j.Documents[i]
		if d.Bad != nil || d.TextBytes != int64(len(text)) ||
			!slices.Equal(j.IDs[d.IDs.Start:d.IDs.End], tok.Encode(text)) {
			t.Errorf("%s: %+v", text, d)
		}
	}
	if j.Documents[0].Hash == j.Documents[2].Hash {
		t.Error("two texts have one hash")
	}
}

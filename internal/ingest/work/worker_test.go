package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	return newWorkerOf(t, example.Templates{})
}

func newWorkerOf(t *testing.T, templates example.Templates) (*Worker, *tokenize.Tokenizer) {
	t.Helper()
	tok, err := builtin.Open("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	f, err := example.NewFormatter(example.FormatOptions{Templates: templates})
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

// TestWaiting: texts of any lengths and numbers that wait are encoded in order, and a bad record among them is left out.
func TestWaiting(t *testing.T) {
	for _, templates := range []example.Templates{{}, {Prompt: "{{ p }}", Target: "{{ text }}"}} {
		w, tok := newWorkerOf(t, templates)
		texts := []string{"", "a b", strings.Repeat("long ", usualTexts/4), "c"}
		for i := range 3 * maxWaiting {
			texts = append(texts, fmt.Sprint("text ", i), strings.Repeat("\n", i))
		}
		for _, n := range []int{usualTexts / 2, usualTexts/2 - 1, usualTexts/2 + 1, 1, usualTexts, 2} {
			texts = append(texts, strings.Repeat(".", n), strings.Repeat("é", n))
		}
		for range 2 { // the second job has the room that the first one grew
			j := new(job.Job)
			for i, text := range texts {
				prompt := texts[len(texts)-1-i]
				record, err := json.Marshal(map[string]string{"p": prompt, "text": text})
				if err != nil {
					t.Fatal(err)
				}
				if i%7 == 6 {
					record = record[:len(record)-1]
				}
				d := j.AddDocument(0)
				d.Record = source.Record{Record: frame.Record{First: true, Last: true}}
				d.Raw.Start = len(j.Raw)
				j.Raw = append(j.Raw, record...)
				d.Raw.End = len(j.Raw)
			}
			if !w.Do(j) {
				t.Fatal("stopped")
			}
			for i, text := range texts {
				d, prompt, target := &j.Documents[i], text, ""
				if templates != (example.Templates{}) {
					prompt, target = texts[len(texts)-1-i], text
				}
				if i%7 == 6 {
					if d.Bad == nil || d.IDs != (job.Span{}) {
						t.Errorf("text %d: %+v", i, d)
					}
				} else if d.Bad != nil || !slices.Equal(j.IDs[d.IDs.Start:d.IDs.End], tok.Encode(prompt)) ||
					!slices.Equal(j.IDs[d.Target.Start:d.Target.End], tok.Encode(target)) {
					t.Errorf("text %d of %d bytes: %v", i, len(text), d.Bad)
				}
			}
		}
	}
}

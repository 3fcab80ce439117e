package origins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

type document struct {
	ordinal int64
	input   int
	name    string
	record  int64
}

// corpus makes documents of inputs of several shapes: lines without gaps, lines with blanks between
// them, ordinals that were rejected, and files of one document.
func corpus(rng *rand.Rand, n int) (docs []document) {
	var ordinal int64
	for input := 0; len(docs) < n; input++ {
		name := fmt.Sprintf("folder/part-%05d.txt", rng.IntN(1e5))
		if rng.IntN(50) == 0 {
			name = strings.Repeat("long/", 700) + name
		}
		blank, rejected := rng.IntN(4)*rng.IntN(2), rng.IntN(2)*rng.IntN(8)
		var record int64
		for range 1 + rng.IntN(1+rng.IntN(3000)) {
			if rejected > 0 && rng.IntN(rejected+1) == 0 {
				ordinal += 1 + rng.Int64N(3)
			}
			record += 1 + int64(rng.IntN(blank+1))
			docs = append(docs, document{ordinal, input, name, record})
			ordinal++
		}
		if rng.IntN(4) == 0 {
			input += rng.IntN(3)
		}
	}
	return docs
}

// written returns the file of docs, saved and restored by way of JSON after each of the given
// chances.
func written(t *testing.T, docs []document, save func() bool) []byte {
	t.Helper()
	w, out := new(Writer), []byte(Magic)
	emit := func(p []byte) error { out = append(out, p...); return nil }
	for _, d := range docs {
		if err := w.Add(d.ordinal, d.input, d.record, func() string { return d.name }, emit); err != nil {
			t.Fatal(err)
		}
		if save() {
			data, err := json.Marshal(w)
			if err != nil {
				t.Fatal(err)
			}
			w = new(Writer)
			if err := json.Unmarshal(data, w); err != nil {
				t.Fatal(err)
			}
		}
	}
	if int64(len(out)) != int64(len(Magic))+w.Pages*PageBytes {
		t.Fatalf("%d bytes of full pages, the writer counts %d pages", len(out), w.Pages)
	}
	return append(out, w.Rest()...)
}

func TestEveryDocumentIsFound(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		docs := corpus(rng, 1+rng.IntN(30_000))
		never := func() bool { return false }
		data := written(t, docs, never)
		if again := written(t, docs, func() bool { return rng.IntN(500) == 0 }); !bytes.Equal(data, again) {
			t.Fatalf("seed %d: other bytes after the writer was saved and restored", seed)
		}
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for i := rng.IntN(5); i < len(docs); i += 1 + rng.IntN(9) {
			d := docs[i]
			o, ok, err := f.Find(d.ordinal)
			name := d.name[:min(len(d.name), maxName)]
			if err != nil || !ok || o.Source != name || o.Record != d.record {
				t.Fatalf("seed %d: document %d: %v %v %v, want record %d of %s", seed, d.ordinal, o, ok, err,
					d.record, name)
			}
			if i > 0 && d.ordinal > docs[i-1].ordinal+1 {
				if o, ok, err := f.Find(d.ordinal - 1); ok || err != nil {
					t.Fatalf("seed %d: ordinal %d has no document, found %v, %v", seed, d.ordinal-1, o, err)
				}
			}
		}
		if _, ok, err := f.Find(docs[len(docs)-1].ordinal + 1); ok || err != nil {
			t.Fatalf("seed %d: found a document after the last: %v", seed, err)
		}
	}
}

// TestFilesAreJoined cuts documents into files at any place, and joins them to the bytes of one.
func TestFilesAreJoined(t *testing.T) {
	never := func() bool { return false }
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		docs := corpus(rng, 1+rng.IntN(20_000))
		want := written(t, docs, never)
		w, got := new(Writer), []byte(Magic)
		input, name := 0, ""
		for at := 0; at < len(docs); {
			n := min(len(docs)-at, 1+rng.IntN(5000))
			goesOn := at > 0 && docs[at].input == docs[at-1].input
			err := Scan(bytes.NewReader(written(t, docs[at:at+n], never)), func(run Run) error {
				if run.Begins && !(goesOn && run.Name == name) {
					input++
				}
				goesOn, name = false, run.Name
				return w.AddRun(run, input, func(p []byte) error { got = append(got, p...); return nil })
			})
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if got = append(got, w.Rest()...); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes, want the %d of one file", seed, len(got), len(want))
		}
	}
	if err := Scan(strings.NewReader(Magic+strings.Repeat("x", PageBytes)), nil); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

func TestOneInputWithoutBlanksIsSmall(t *testing.T) {
	var docs []document
	for i := range int64(100_000) {
		docs = append(docs, document{i, 0, "corpus.jsonl", i + 1})
	}
	if data := written(t, docs, func() bool { return false }); len(data) > 64 {
		t.Errorf("%d bytes for one run of documents", len(data))
	}
}

func TestOrdinalsThatFallAreNoted(t *testing.T) {
	w := new(Writer)
	for _, ordinal := range []int64{0, 1, 1} {
		if err := w.Add(ordinal, 0, 1, func() string { return "a" }, func([]byte) error { return io.EOF }); err != nil {
			t.Fatal(err)
		}
	}
	if !w.Failed {
		t.Error("an ordinal came twice and nothing was noted")
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	docs := corpus(rand.New(rand.NewPCG(9, 9)), 20_000)
	data := written(t, docs, func() bool { return false })
	for i := 0; i < len(data); i += 37 {
		bad := bytes.Clone(data)
		bad[i] ^= 0x40
		f, err := Open(bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			continue
		}
		for k := 0; k < len(docs); k += 701 {
			d := docs[k]
			o, ok, err := f.Find(d.ordinal)
			if err == nil && ok && (o.Record != d.record || o.Source != d.name[:min(len(d.name), maxName)]) {
				t.Fatalf("byte %d flipped: document %d is record %d of %.40s", i, d.ordinal, o.Record, o.Source)
			}
			if err == nil && !ok && f.check(d.ordinal) == nil {
				t.Fatalf("byte %d flipped: document %d is not found, and no page is damaged", i, d.ordinal)
			}
		}
	}
}

// Only the end of a reader is the end of a file: an error that wraps io.EOF, as a broken connection's may, is
// passed on, and a file that is cut short within a page is damaged.
func TestScanOfWhatEndsEarly(t *testing.T) {
	data := written(t, corpus(rand.New(rand.NewPCG(3, 9)), 60_000), func() bool { return false })
	broken := fmt.Errorf("connection lost: %w", io.EOF)
	for _, n := range []int{0, 5, len(Magic), len(Magic) + 7, len(Magic) + PageBytes, len(data)} {
		visit := func(Run) error { return nil }
		err := Scan(bytes.NewReader(data[:n]), visit)
		if whole := n >= len(Magic) && (n-len(Magic))%PageBytes == 0 || n == len(data); whole != (err == nil) ||
			!whole && (!errors.Is(err, ErrCorrupt) || errors.Is(err, io.EOF)) {
			t.Errorf("%d bytes: %v", n, err)
		}
		r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))
		if err := Scan(r, visit); !errors.Is(err, broken) {
			t.Errorf("%d bytes and a broken connection: %v", n, err)
		}
	}
}

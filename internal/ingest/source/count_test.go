package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/google/go-cmp/cmp"
)

// countTexts are texts whose lines are hard to count.
func countTexts(rng *rand.Rand) string {
	parts := []string{"", "\n", "\r\n", " ", "\t", "\u2003", "\u00a0", "\u3000", "x", "é", "\x00", "\xe2\x80", "\xff",
		"\x1c", "\ufeff",
		"a line of words\n", "{\"text\": \"a\"}\n", strings.Repeat(" ", 40), strings.Repeat("long ", 30),
		"{\n", "\u2028\n"}
	var b strings.Builder
	for range rng.IntN(60) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String()
}

// TestCountEqualsReading compares counts of lines, block by block, with those of the framers.
func TestCountEqualsReading(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	for i := range effort.Of(60, 400, 20_000) {
		text := countTexts(rng)
		format := []Format{Text, JSONL, Chat}[i%3]
		set, err := Open(context.Background(),
			Options{Args: []string{write(t, dir, fmt.Sprintf("%d.txt", i), "x\n"+text)},
				Format: format, Framing: Framing{PieceBytes: 32, MaxPieceBytes: 64, MaxRecordBytes: 128, TextField: []string{"",
					"text"}[i/3%2]}})
		if errors.Is(err, cause.Binary) || errors.Is(err, cause.Unsupported) { // as what looks like UTF-16 is
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		in, err := set.Input(0)
		if err != nil {
			t.Fatal(err)
		}
		o := CountOptions{Buffer: make([]byte, 4+rng.IntN(90)), Progress: func(int64) {}}
		for range rng.IntN(4) {
			o.Cuts = append(o.Cuts, in.Size*int64(len(o.Cuts)+1)/5)
		}
		want, err := set.countRecords(context.Background(), &in, &o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := set.Count(context.Background(), 0, o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Documents != want.Documents || got.done.Bytes != want.done.Bytes || got.done.Sum != want.done.Sum {
			t.Fatalf("%s %q in blocks of %d: %d documents, %+v; want %d, %+v", format, text, len(o.Buffer),
				got.Documents,
				got.done, want.Documents, want.done)
		}
		what := fmt.Sprintf("%s %q, cuts %v in blocks of %d", format, text, o.Cuts, len(o.Buffer))
		for _, c := range []*Counted{got, want} {
			checkMarks(t, what, set, c)
		}
	}
}

// TestCountAhead: a large file of lines is counted alike, read ahead or not, and as its records are.
func TestCountAhead(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 3<<20; i++ {
		fmt.Fprintln(&b, i, strings.Repeat("some text ", i%90))
	}
	set := openSet(t, Options{Args: []string{write(t, t.TempDir(), "lines.txt", b.String())}, Format: Text})
	in, err := set.Input(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, cuts := range [][]int64{nil, {1 << 20}, {1 << 19, 2 << 20}} {
		o := CountOptions{Cuts: cuts, Buffer: make([]byte, CountBytes), Progress: func(int64) {}}
		want, err := set.countRecords(t.Context(), &in, &o)
		if err != nil {
			t.Fatal(err)
		}
		for _, o.Ahead = range []bool{false, true} {
			got, err := set.Count(t.Context(), 0, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Counted{})); diff != "" {
				t.Errorf("cuts %v, ahead %v: %s", cuts, o.Ahead, diff)
			}
		}
	}
}

// checkMarks reads the stretches between marks as ranges, and compares them with the whole.
func checkMarks(t *testing.T, what string, set *Set, c *Counted) {
	t.Helper()
	all, err := readFrom(t, set, Position{})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := set.PlanInput(0)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	marks := append([]Mark{{}}, c.Marks...)
	if len(c.Spans) != len(marks) {
		t.Fatalf("%s: %d spans between %d marks", what, len(c.Spans), len(c.Marks))
	}
	for i, from := range marks {
		r := &Range{Inputs: []Listed{listed}, From: from}
		r.From.Input, r.Inputs[0].Sum = 0, c.Spans[i].Sum
		if i+1 < len(marks) {
			r.To = marks[i+1]
		}
		o := set.opts
		o.Only = r
		part := openSet(t, o)
		got, err := readFrom(t, part, part.begin())
		if err != nil {
			t.Fatalf("%s: stretch %d of %+v: %v", what, i, c, err)
		}
		for _, rec := range got {
			if at >= len(all) || rec.data != all[at].data || rec.Row != all[at].Row || rec.Ordinal != all[at].Ordinal {
				t.Fatalf("%s: stretch %d from %+v: record %+v, want %+v", what, i, from, rec, all[min(at, len(all)-1)])
			}
			at++
		}
	}
	if at != len(all) {
		t.Fatalf("%s: %d of %d records", what, at, len(all))
	}
}

func BenchmarkCount(b *testing.B) {
	dir := b.TempDir()
	line := "a line of a text that is about as long as lines are, with a number and some more words\n"
	text := strings.Repeat(line, 64<<20/len(line))
	for _, name := range []string{"a.txt", "a.jsonl", "a.csv"} {
		data := text
		switch name {
		case "a.jsonl":
			data = strings.Repeat("{\"id\": 17, \"text\": \""+line[:len(line)-1]+"\"}\n", 64<<20/120)
		case "a.csv":
			data = "id,text\n" + strings.Repeat("17,\""+line[:len(line)-1]+"\"\n", 64<<20/96)
		}
		set, err := Open(context.Background(), Options{Args: []string{write(b, dir, name, data)}, Framing: Framing{TextField: "text"}})
		if err != nil {
			b.Fatal(err)
		}
		o := CountOptions{Buffer: make([]byte, CountBytes), Progress: func(int64) {}, Cuts: []int64{1 << 20, 30 << 20}}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := set.Count(context.Background(), 0, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

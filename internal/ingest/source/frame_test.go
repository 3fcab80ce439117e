package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// frame reads text as stdin in one format.
func framed(t testing.TB, text string, o Options) []piece {
	t.Helper()
	o.Args, o.Stdin = []string{"-"}, strings.NewReader(text)
	set := openSet(t, o)
	out, err := readFrom(t, set, Position{})
	if err != nil && !errors.Is(err, cause.NoDocuments) {
		t.Fatal(err)
	}
	return out
}

// show writes records so that a table can hold them: pieces joined by "|", bad ones as "!".
func show(records []piece) []string {
	var out []string
	for _, r := range records {
		s := r.data
		if r.Err != nil {
			s = "!"
		}
		if r.First {
			out = append(out, s)
		} else {
			out[len(out)-1] += "|" + s
		}
	}
	return out
}

func TestFraming(t *testing.T) {
	const long = "abcdefghijklmnopqrstuvwxyz"
	for _, c := range []struct {
		name   string
		format Format
		o      Options
		text   string
		want   []string
	}{
		{"lines", Text, Options{}, "a\nb\r\n\n \t\n\u2003\nc", []string{"a", "b", "c"}},
		{"byte order mark", Text, Options{}, "\ufeffa\n\ufeffb\n", []string{"a", "\ufeffb"}},
		{"carriage returns", Text, Options{}, "a\r\r\nb\r", []string{"a\r", "b\r"}},
		{"white space around is kept", Text, Options{}, " a \n", []string{" a "}},
		{"pieces", Text, Options{Framing: Framing{PieceBytes: 16}}, long + "\nx\n", []string{long[:16] + "|" + long[16:], "x"}},
		{"a piece is as long as a line", Text, Options{Framing: Framing{PieceBytes: 26}}, long + "\r\n" + long, []string{long, long}},
		{"pieces do not cut characters", Text, Options{Framing: Framing{PieceBytes: 16}}, "aéééééééééééé\n", []string{"aééééééé|ééééé"}},
		{"long white space", Text, Options{Framing: Framing{PieceBytes: 16}}, strings.Repeat(" ", 99) + "\n" + strings.Repeat(" ", 35) +
			"a\n", []string{"   a"}},
		{"cut at spaces", Text, Options{Framing: Framing{PieceBytes: 16, Cut: atSpaces}}, "one two three four five six\n",
			[]string{"one two three| four five six"}},
		{"cut nowhere", Text, Options{Framing: Framing{PieceBytes: 16, MaxPieceBytes: 20, Cut: func([]byte) int { return 0 }}}, long,
			[]string{long[:20] + "|" + long[20:]}},
		{"whole lines only", Text, Options{Framing: Framing{MaxRecordBytes: 16, Whole: true}}, long + "\nx\n", []string{"!", "x"}},
		{"file", Document, Options{}, "a\nb\n", []string{"a\nb\n"}},
		{"file in pieces", Document, Options{Framing: Framing{PieceBytes: 16}}, long, []string{long[:16] + "|" + long[16:]}},
		{"file of exactly a piece", Document, Options{Framing: Framing{PieceBytes: 26}}, long, []string{long}},
		{"blank file", Document, Options{}, " \n\n", nil},
		{"articles", WikiText, Options{}, " \n = A = \n \n text \n \n = = B = = \n \n more \n \n = C = \n \n end",
			[]string{
				" = A = \n \n text \n \n = = B = = \n \n more \n \n", " = C = \n \n end"}},
		{"formula", WikiText, Options{}, " \n = A = \n \n x \n = 1 and k = \n 2 \n \n = 3 . 14 = \n y \n = B = \n \n z",
			[]string{
				" = A = \n \n x \n = 1 and k = \n 2 \n \n = 3 . 14 = \n y \n = B = \n \n z"}},
		{"before the first heading", WikiText, Options{}, " intro \n \n = A = \n \n x \n",
			[]string{" intro \n \n", " = A = \n \n x \n"}},
		{"stripped layout", WikiText, Options{}, "= A =\ntext\n== s ==\n= B =\ntext",
			[]string{"= A =\ntext\n== s ==\n", "= B =\ntext"}},
		{"no blank line before", WikiText, Options{}, " = A = \n\nx\n = B = \n\ny\n = 1 = \nz",
			[]string{" = A = \n\nx\n", " = B = \n\ny\n = 1 = \nz"}},
		{"heading at the end", WikiText, Options{}, " \n = A = \n \n = B = \n", []string{" = A = \n \n", " = B = \n"}},
		{"article in pieces", WikiText, Options{Framing: Framing{PieceBytes: 16}}, " \n = A = \n \n 0123456789 \n \n = B = \n \n",
			[]string{" = A = \n \n 01234|56789 \n \n", " = B = \n \n"}},
		{"json lines", JSONL, Options{}, "{\"a\":1}\n\n {} \r\n{", []string{`{"a":1}`, " {} \r", "{"}},
		{"long json line", JSONL, Options{Framing: Framing{MaxRecordBytes: 16}}, `{"text":"0123456789"}` + "\n{}\n", []string{"!", "{}"}},
		{"streamed json", JSONL, Options{Framing: Framing{PieceBytes: 16, MaxPieceBytes: 16, TextField: "text"}},
			`{"x":[1,{"y":null}],"text":"0123456789abc\n\u00e9\ud83d\ude00fghijklmnop","z":-1.5e3}` + "\n{}\n",
			[]string{"0123456789abc\n|é|😀fghi|jklmnop", "{}"}},
		{"streamed json without the field", JSONL, Options{Framing: Framing{PieceBytes: 16, MaxPieceBytes: 16, TextField: "text"}},
			`{"a":"0123456789abcdefghij"}` + "\n{}\n", []string{"!", "{}"}},
		{"streamed json is bad after the text", JSONL, Options{Framing: Framing{PieceBytes: 16, MaxPieceBytes: 16, TextField: "text"}},
			`{"text":"0123456789abcdefghij",}` + "\n{}\n", []string{"0123456789abcdef|!", "{}"}},
		{"streamed json ends in the text", JSONL, Options{Framing: Framing{PieceBytes: 16, MaxPieceBytes: 16, TextField: "text"}},
			`{"text":"0123456789abcdefghij` + "\n{}\n", []string{"0123456789abcdef|!", "{}"}},
		{"csv", CSV, Options{}, "a,b\n1,2\n\"x\ny\",\"q\"\"q\"\r\n\n3,\"\"",
			[]string{"1,2", "\"x\ny\",\"q\"\"q\"", `3,""`}},
		{"csv with a bad quote", CSV, Options{}, "a,b\n\"x\"y,2\n3,4\n", []string{"!", "3,4"}},
		{"csv with an open quote", CSV, Options{}, "a,b\n\"x,2\n3,4\n", []string{"!", "3,4"}},
		{"csv with an open quote before another", CSV, Options{}, "a,b\n1,\"x\n3,\"y\"\n5,6\n",
			[]string{"!", `3,"y"`, "5,6"}},
		{"long csv record", CSV, Options{Framing: Framing{MaxRecordBytes: 16}}, "a,b\n1,\"0123456789\n\n0123456789\"\n3,4\n",
			[]string{"!", "3,4"}},
		{"semicolons", CSV, Options{}, "\"a\";b\n\"1;\n\";2\n", []string{"\"1;\n\";2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Format = c.format
			if diff := cmp.Diff(c.want, show(framed(t, c.text, c.o))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func atSpaces(text []byte) int { return max(0, bytes.LastIndexByte(text, ' ')) }

func TestRowsAndOffsets(t *testing.T) {
	type place struct{ Row, Offset, Ordinal int64 }
	for _, c := range []struct {
		format Format
		text   string
		want   []place
	}{
		{Text, "\na\n \nb\n", []place{{2, 1, 0}, {4, 5, 1}}},
		{JSONL, "\n{}\n{}", []place{{2, 1, 0}, {3, 4, 1}}},
		{CSV, "h\n1\n\n2\n", []place{{1, 2, 0}, {2, 5, 1}}},
		{WikiText, " \n = A = \n \nx\n \n = B = \n \n", []place{{1, 2, 0}, {2, 16, 1}}},
	} {
		var got []place
		for _, r := range framed(t, c.text, Options{Format: c.format}) {
			got = append(got, place{r.Row, r.Offset, r.Ordinal})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.format, got, c.want)
		}
	}
}

// pieces of text that framing has to deal with.
var fragments = []string{"a", "é", "😀", "\xff", "\xe2\x82", " ", "\n", "\r\n", " \n", "\n\n", "=", " = A = \n",
	" \n = B = \n \n", " = = C = = \n", " = D =", `"`, `""`, ",", ";", "\t",
	`{"text":"`, `"}`, `\u00e9`, `\ud83d\ude00`, `\n`, `\`, `{"a":[1,{"b":null}],"text":"x`, "}\n{", "\u2003",
	"word ", "0123456789", "title,ingredients,directions\n", "\ufeff"}

func drawText(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(0, 60).Draw(t, "fragments") {
		b.WriteString(rapid.SampledFrom(fragments).Draw(t, "fragment"))
	}
	return b.String()
}

func drawOptions(t *rapid.T) Options {
	o := Options{
		Format: rapid.SampledFrom([]Format{Text, Document, WikiText, JSONL, JSON, CSV}).Draw(t, "format"),
		Framing: Framing{PieceBytes: rapid.IntRange(16, 40).Draw(t, "piece"), MaxRecordBytes: rapid.IntRange(16, 60).Draw(t, "record"),
			Whole: rapid.IntRange(0, 4).Draw(t, "whole") == 0},
	}
	o.MaxPieceBytes = o.PieceBytes + rapid.IntRange(0, 40).Draw(t, "longest piece")
	if rapid.Bool().Draw(t, "cut at spaces") {
		o.Cut = atSpaces
	}
	if rapid.Bool().Draw(t, "stream") {
		o.TextField = "text"
	}
	return o
}

// isEmpty reports whether Open refuses text.
func isEmpty(text string) bool { return strings.TrimPrefix(text, "\ufeff") == "" }

// outcome is everything that a run gave, errors as text.
func outcome(records []piece, err error) []string {
	out := []string{fmt.Sprint(err)}
	for _, r := range records {
		out = append(out, fmt.Sprintf("%d %d %d %t %t %t %t %q %v", r.Offset, r.Row, r.Ordinal, r.First, r.Last,
			r.Decoded, r.Forced, r.data, r.Err))
	}
	return out
}

// I1 and I2: no read size and no interruption changes what comes.
func TestChunksAndResuming(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text, o := drawText(rt), drawOptions(rt)
		if isEmpty(text) {
			return
		}
		open := func(src io.Reader, chunk int) *Set {
			o := o
			o.Args, o.Stdin, o.chunkBytes = []string{"-"}, src, chunk
			return openSet(t, o)
		}
		first, firstErr := readFrom(t, open(strings.NewReader(text), 0), Position{})
		want := outcome(first, firstErr)
		for _, chunk := range []int{1, 2, 3, 7, 64} {
			got := outcome(readFrom(t, open(iotest.OneByteReader(strings.NewReader(text)), chunk), Position{}))
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("chunks of %d bytes: %s\n%q", chunk, diff, text)
			}
		}
		for i, r := range first {
			saved, err := json.Marshal(r.next)
			if err != nil {
				rt.Fatal(err)
			}
			var at Position
			if err := json.Unmarshal(saved, &at); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(r.next, at, cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("a position changes in JSON: %s", diff)
			}
			rest, err := readFrom(t, open(strings.NewReader(text), 1+i%5), at)
			if diff := cmp.Diff(outcome(first[i+1:], firstErr), outcome(rest, err)); diff != "" {
				rt.Fatalf("resumed after record %d: %s\n%q", i, diff, text)
			}
		}
		for i, r := range first {
			if o.PieceBytes < len(r.data) && !r.Forced && len(r.data) > o.MaxPieceBytes &&
				len(r.data) > o.MaxRecordBytes {
				rt.Fatalf("record %d has %d bytes", i, len(r.data))
			}
		}
	})
}

// Pieces put together are the document, wherever they were cut.
func TestPiecesJoin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text, o := drawText(rt), drawOptions(rt)
		if o.Format == JSONL || o.Format == JSON || o.Format == CSV || o.Whole {
			return
		}
		if isEmpty(text) {
			return
		}
		joined := func(o Options) (docs []string) {
			for _, r := range framed(t, text, o) {
				if r.First {
					docs = append(docs, "")
				}
				docs[len(docs)-1] += r.data
			}
			return docs
		}
		if isEmpty(text) || strings.Contains(text, strings.Repeat(" ", 8)) {
			return // white space longer than a piece is dropped a piece at a time
		}
		if diff := cmp.Diff(joined(Options{Format: o.Format}), joined(o)); diff != "" &&
			!longBlank(text, o.PieceBytes) {
			rt.Fatalf("%s\n%q", diff, text)
		}
	})
}

// longBlank reports whether text has a stretch of white space of n bytes.
func longBlank(text string, n int) bool {
	run := 0
	for _, r := range text {
		if frame.IsBlank([]byte(string(r))) {
			run += len(string(r))
		} else {
			run = 0
		}
		if run >= n-3 {
			return true
		}
	}
	return false
}

// Streamed JSON gives the text that encoding/json finds.
func TestStreamedJSONEqualsDecoded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range rng.IntN(400) {
			b.WriteString([]string{"x", "é", "😀", "\n", "\"", "\\", "\t", "<", "日本"}[rng.IntN(9)])
		}
		line, err := json.Marshal(map[string]any{"before": []any{1, nil, "}"}, "text": b.String(),
			"zz": map[string]any{"text": 1}})
		if err != nil {
			t.Fatal(err)
		}
		if len(line) <= 64 {
			continue
		}
		var got strings.Builder
		for _, r := range framed(t, string(line)+"\n", Options{Format: JSONL, Framing: Framing{PieceBytes: 16 + rng.IntN(40),
			MaxPieceBytes: 64, TextField: "text"}}) {
			if r.Err != nil || !r.Decoded {
				t.Fatalf("decoded %t, error %v", r.Decoded, r.Err)
			}
			got.WriteString(r.data)
		}
		if got.String() != b.String() {
			t.Fatalf("%q, want %q", got.String(), b.String())
		}
	}
}

// What an input ends with is the same wherever it lies in the window, also where the window is full
// and moves it to look for more.
func TestEndOfInputInAnyWindow(t *testing.T) {
	for _, c := range []struct {
		format      Format
		begin, tail string
	}{
		{JSON, " ", "wo"},
		{JSON, "{} ", "12345"},
		{WikiText, " \n = A = \n \n text \n", " \n = B = "},
		{WikiText, " \n = A = \n", " \n = B B B B B B B B = "},
		{WikiText, " \n = A = \n \n text \n", " \n = B = \n"},
		{WikiText, " \n = A = \n \n text \n", " \n = B = \nx"},
		{WikiText, " \n = A = \n \n text \n", " \n = B = \n "},
		{Text, "a line\n", "the last"},
		{CSV, "a,b\n1,2\n", "3,\"4\""},
	} {
		for before := 0; before < 40; before += effort.Of(7, 3, 1) {
			text := strings.Repeat(c.begin, before/len(c.begin)) + strings.Repeat(" ", before%len(c.begin)) + c.tail
			read := func(chunk int) []string {
				o := Options{Format: c.format, Args: []string{"-"}, Places: Places{Stdin: strings.NewReader(text)}, Framing: Framing{PieceBytes: 16,
					MaxRecordBytes: 16, MaxPieceBytes: 16}, chunkBytes: chunk}
				return outcome(readFrom(t, openSet(t, o), Position{}))
			}
			want := read(0)
			for chunk := 1; chunk < 40; chunk++ {
				if diff := cmp.Diff(want, read(chunk)); diff != "" {
					t.Fatalf("%s %q in a window of %d bytes: %s", c.format, text, chunk, diff)
				}
			}
		}
	}
}

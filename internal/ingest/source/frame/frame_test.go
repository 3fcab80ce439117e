package frame

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dsload/dsload/internal/effort"
)

// A piece is what a framer gives, and where it stands after it.
type piece struct {
	text   string // all about it
	data   string
	first  bool
	offset int64
	at     Place
	state  uint32
}

// pieces frames text from after a piece on.
func pieces(t *testing.T, makeFramer func(*Window, *Options) (Framer, error), o *Options, src io.Reader,
	after piece) []piece {
	t.Helper()
	var w Window
	w.Reset(src, 16, 1<<10)
	f, err := makeFramer(&w, o)
	if err != nil {
		t.Fatal(err)
	}
	if after.offset > 0 {
		if !w.Skip(after.offset) {
			t.Fatalf("the text ends before byte %d", after.offset)
		}
		*f.At() = after.at
		f.Restore(after.state)
	}
	var out []piece
	for {
		var rec Record
		before := w.Offset()
		data, err := f.Next(nil, &rec)
		if err == io.EOF {
			return out
		}
		if err != nil || rec.Offset < before || rec.Offset > w.Offset() {
			t.Fatalf("a piece of the bytes from %d to %d begins at %d: %v", before, w.Offset(), rec.Offset, err)
		}
		what := fmt.Sprintf("%s first=%t last=%t decoded=%t %v %c", data, rec.First, rec.Last, rec.Decoded, rec.Columns,
			rec.Comma)
		if rec.Err != nil {
			what = rec.Err.Error()
		}
		if rec.Last {
			f.At().Row++
		}
		out = append(out, piece{what, string(data), rec.First, w.Offset(), *f.At(), f.State()})
	}
}

// Pieces depend on the text alone, however it is read, and a framer that is restored after one continues with the
// next.
func TestFramersResume(t *testing.T) {
	options := Options{PieceBytes: 16, MaxPieceBytes: 32, MaxRecordBytes: 48, Cut: CharacterCut, TextField: "text"}
	below := options
	below.Records = "a.data"
	long := strings.Repeat("zwölf ", 12)
	for name, c := range map[string]struct {
		make func(*Window, *Options) (Framer, error)
		o    *Options
		text string
		want int
	}{
		"text":       {NewText, &options, "one\n\n" + long + "\r\nlast", 8},
		"document":   {NewDocument, &options, "one\n" + long, 6},
		"wikitext":   {NewWikiText, &options, " \n = A = \n \n " + long + "\n \n = B = \n \n end", 8},
		"jsonl":      {NewJSONL, &options, `{"text":"a"}` + "\n\n" + `{"n":1,"text":"` + long + `"}` + "\n{}", 8},
		"chat":       {NewChat, &options, `{"text":"a"}` + "\n" + `{"text":"` + long + `"}` + "\n", 2},
		"json":       {NewJSON, &options, `[{"text":"a"}, "b", 3, {"text":"` + long + `"}] {}`, 5},
		"cut json":   {NewJSON, &options, `[{"text":"a"}, {"te`, 2},
		"json below": {NewJSON, &below, `{"a":[{"data":[{"b":1},{"b":2}],"c":[3]},{"data":[{}]}]}`, 3},
		"csv":        {NewCSV, &options, "id;text\n1;\"a;\nb\"\n\n2;" + long + "\n3;\"x\" y\n4;c", 4},
	} {
		t.Run(name, func(t *testing.T) {
			if all := samePieces(t, c.make, c.o, c.text); len(all) != c.want {
				t.Errorf("%d pieces, want %d: %+v", len(all), c.want, all)
			}
		})
	}
}

// samePieces returns the pieces of a text, and compares them with those of the text as it may be read besides.
func samePieces(t *testing.T, make func(*Window, *Options) (Framer, error), o *Options, text string) []piece {
	t.Helper()
	all := pieces(t, make, o, strings.NewReader(text), piece{})
	slow := pieces(t, make, o, iotest.OneByteReader(strings.NewReader(text)), piece{})
	if !slices.Equal(slow, all) {
		t.Errorf("%q a byte at a time: %+v, want %+v", text, slow, all)
	}
	for n := range 40 {
		if got := pieces(t, make, o, &memory{text: text, size: 1 + n, room: n / 2}, piece{}); !slices.Equal(got, all) {
			t.Errorf("%q in blocks of %d bytes: %+v, want %+v", text, 1+n, got, all)
		}
	}
	for i, p := range all {
		rest := pieces(t, make, o, iotest.HalfReader(strings.NewReader(text)), p)
		if !slices.Equal(rest, all[i+1:]) {
			t.Errorf("%q after piece %d: %+v, want %+v", text, i, rest, all[i+1:])
		}
	}
	return all
}

// The articles of random lines are those of the definition in wikitext.go.
func TestArticles(t *testing.T) {
	rng := effort.Random(t)
	o := Options{PieceBytes: 16, MaxPieceBytes: 32, MaxRecordBytes: 48, Cut: CharacterCut}
	lines := []string{"", "", " ", "\t\r", " = A = ", "= B =", "= = C = =", "= =", "=  =", " =D= ", "= E = =", "= F =x", "x = G =", "H",
		strings.Repeat("zwölf ", 7), strings.Repeat(" ", 40), "=" + strings.Repeat(" ", 40) + "I ="}
	for range effort.Of(120, 3000, 100_000) {
		text := ""
		for range rng.IntN(12) {
			text += lines[rng.IntN(len(lines))] + "\n"
		}
		if rng.IntN(2) == 0 {
			text = strings.TrimSuffix(text, "\n")
		}
		var got []string
		for _, p := range samePieces(t, NewWikiText, &o, text) {
			if p.first {
				got = append(got, "")
			}
			got[len(got)-1] += p.data
		}
		want := articlesOf(text, o.PieceBytes)
		for _, articles := range [][]string{got, want} { // pieces of white space before the first are left out
			if len(articles) > 0 {
				articles[0] = strings.TrimSpace(articles[0])
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q has the articles %q, not %q", text, want, got)
		}
	}
}

// articlesOf is the definition. The layout is found within the first bytes.
func articlesOf(text string, within int) (articles []string) {
	blank := func(line string) bool { return strings.TrimSpace(line) == "" }
	candidate := func(line string) bool {
		inner, isOpen := strings.CutPrefix(strings.TrimSpace(line), "= ")
		inner, isClosed := strings.CutSuffix(inner, " =")
		inner = strings.TrimSpace(inner)
		return isOpen && isClosed && inner != "" && !strings.HasPrefix(inner, "=") && !strings.HasSuffix(inner, "=")
	}
	lines := strings.SplitAfter(text, "\n")
	around := func(i int) (before, after bool) {
		return i == 0 || blank(lines[i-1]), i+1 == len(lines) || blank(lines[i+1])
	}
	needBefore, needAfter := true, true
	if i := slices.IndexFunc(lines, func(line string) bool { return !blank(line) }); i >= 0 && candidate(lines[i]) &&
		len(strings.Join(lines[:i], "")) < within {
		_, after := around(i)
		needBefore, needAfter = i > 0, after
	}
	for i, line := range lines {
		before, after := around(i)
		if isHeading := candidate(line) && (before || !needBefore) && (after || !needAfter); isHeading || i == 0 {
			articles = append(articles, "")
		}
		articles[len(articles)-1] += line
	}
	if blank(articles[0]) {
		articles = articles[1:]
	}
	return articles
}

// memory is a source in blocks. A block is gone once the next is taken.
type memory struct {
	text       string
	size, room int
	block      []byte
}

func (m *memory) Keeps(n int) bool { return n <= m.room }

func (m *memory) Next(keep []byte) ([]byte, error) {
	n := min(m.size, len(m.text))
	if n == 0 {
		return keep, io.EOF
	}
	block := append(slices.Clone(keep), m.text[:n]...)
	for i := range m.block {
		m.block[i] = '!'
	}
	m.block, m.text = block, m.text[n:]
	return block, nil
}

func (m *memory) Read(p []byte) (int, error) {
	for i := range m.block {
		m.block[i] = '!'
	}
	n := copy(p, m.text[:min(m.size, len(m.text))])
	if m.text = m.text[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// A window ends at its limit as at the end of its input, and continues after it; sums are over what was consumed.
func TestWindowLimit(t *testing.T) {
	const text = "0123456789abcdef"
	whole := func(n int64) [2]string {
		var w Window
		w.Reset(strings.NewReader(text), 4, 8)
		w.KeepState()
		w.SetLimit(10)
		if w.Skip(11) || w.Offset() != 10 || w.Failed() != nil {
			t.Fatalf("at %d: %v", w.Offset(), w.Failed())
		}
		w.SetLimit(NoLimit)
		if !w.Skip(n) {
			t.Fatalf("the window ends at %d", w.Offset())
		}
		w.Pin()
		sum, state := w.Unpin()
		w.Reset(strings.NewReader(text[n:]), 4, 8)
		w.KeepState()
		if !w.ResumeAt(n, n, sum, state) || w.Offset() != n || w.ResumeAt(n, n+1, sum, state) {
			t.Errorf("resumed at %d of %d", w.Offset(), n)
		}
		for w.Need(1) {
			w.Consume(1)
		}
		return [2]string{w.Sum().String(), fmt.Sprint(w.Offset())}
	}
	want := whole(10)
	for n := int64(11); n <= int64(len(text)); n++ {
		if got := whole(n); got != want {
			t.Errorf("resumed at %d: %v, want %v", n, got, want)
		}
	}
}

// LineEnds finds what a search byte by byte does, for texts and room of every length.
func TestLineEnds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 400)
	for _, every := range []int{1, 2, 5, 40, 100, 1000} {
		for n := range text {
			for i := range text {
				if text[i] = "\x00\x8a\v"[rnd.IntN(3)]; rnd.IntN(every) == 0 {
					text[i] = '\n'
				}
			}
			room := slices.Repeat([]int32{-1}, len(text)+9)
			ends := room[: rnd.IntN(4) : 4+rnd.IntN(n+1)]
			want := slices.Clone(ends)
			for i, b := range text[:n] {
				if b == '\n' && len(want) < cap(ends) {
					want = append(want, int32(i))
				}
			}
			if got := LineEnds(ends, text[:n]); !slices.Equal(got, want) {
				t.Fatalf("%q: %v, want %v", text[:n], got, want)
			}
			if after := room[cap(ends):]; slices.ContainsFunc(after, func(end int32) bool { return end != -1 }) {
				t.Fatalf("%q: %v after the room", text[:n], after)
			}
		}
	}
}

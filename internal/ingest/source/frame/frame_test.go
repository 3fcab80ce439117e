package frame

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// A piece is what a framer gives, and where it stands after it.
type piece struct {
	text   string
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
		data, err := f.Next(nil, &rec)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%s first=%t last=%t decoded=%t %v %c", data, rec.First, rec.Last, rec.Decoded, rec.Columns,
			rec.Comma)
		if rec.Err != nil {
			what = rec.Err.Error()
		}
		if rec.Last {
			f.At().Row++
		}
		out = append(out, piece{what, w.Offset(), *f.At(), f.State()})
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
			all := pieces(t, c.make, c.o, strings.NewReader(c.text), piece{})
			if len(all) != c.want {
				t.Errorf("%d pieces, want %d: %+v", len(all), c.want, all)
			}
			slow := pieces(t, c.make, c.o, iotest.OneByteReader(strings.NewReader(c.text)), piece{})
			if !slices.Equal(slow, all) {
				t.Errorf("a byte at a time: %+v, want %+v", slow, all)
			}
			for n := range 40 {
				if got := pieces(t, c.make, c.o, &memory{text: c.text, size: 1 + n, room: n / 2}, piece{}); !slices.Equal(got, all) {
					t.Errorf("in blocks of %d bytes: %+v, want %+v", 1+n, got, all)
				}
			}
			for i, p := range all {
				rest := pieces(t, c.make, c.o, iotest.HalfReader(strings.NewReader(c.text)), p)
				if !slices.Equal(rest, all[i+1:]) {
					t.Errorf("after piece %d: %+v, want %+v", i, rest, all[i+1:])
				}
			}
		})
	}
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

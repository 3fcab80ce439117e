package source

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/zeebo/xxh3"
)

// The bytes of generated text are part of what users rely on: these checksums change with nothing
// but a new major version.
func TestSynthBytes(t *testing.T) {
	for address, want := range map[string]uint64{
		"synth://wikitext?docs=300":        0xafe0936646555765,
		"synth://wikitext?seed=2&docs=300": 0x8ffed2cbe6195802,
		"synth://recipes?docs=3000":        0x6ffa1c1002c7de3a,
	} {
		h := xxh3.New()
		for _, r := range readAll(t, Options{Args: []string{address}}) {
			io.WriteString(h, r.data)
		}
		if got := h.Sum64(); got != want {
			t.Errorf("%s: %#x, want %#x", address, got, want)
		}
	}
}

func TestSynthSeeks(t *testing.T) {
	for _, address := range []string{"synth://wikitext?bytes=1MB&seed=9", "synth://recipes?docs=500"} {
		set := openSet(t, Options{Args: []string{address, "synth://recipes?docs=2"}})
		all, err := readFrom(t, set, Position{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 7, len(all) - 4, len(all) - 3, len(all) - 1} {
			rest, err := readFrom(t, set, all[i].next)
			if err != nil || !slices.Equal(outcome(rest, nil), outcome(all[i+1:], nil)) {
				t.Errorf("%s: from record %d: %d records, %v", address, i, len(rest), err)
			}
		}
	}
	far := Position{Row: 1 << 40, Offset: 1 << 54, Ordinal: 1 << 40, Known: openSet(t,
		Options{Args: []string{"synth://wikitext"}}).known}
	r, err := openSet(t, Options{Args: []string{"synth://wikitext"}}).Reader(far)
	if err != nil {
		t.Fatal(err)
	}
	var rec Record
	if data, err := r.Next(nil, &rec); err != nil || len(data) == 0 || rec.Ordinal != 1<<40 || rec.Offset != 1<<54 {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestSynthLimits(t *testing.T) {
	if n := len(readAll(t, Options{Args: []string{"synth://recipes?docs=17"}})); n != 17 {
		t.Errorf("%d documents, want 17", n)
	}
	records := readAll(t, Options{Args: []string{"synth://recipes?bytes=10kB"}})
	total := 0
	for _, r := range records {
		total += len(r.data)
	}
	if last := len(records[len(records)-1].data); total < 10_000 || total-last >= 10_000 {
		t.Errorf("%d bytes, the last document %d", total, last)
	}
}

// A file of generated articles reads back as those articles.
func TestSynthIsWikiText(t *testing.T) {
	want := readAll(t, Options{Args: []string{"synth://wikitext?bytes=3MB"}})
	got := readAll(t, Options{Args: []string{synthFile(t, WikiText, decompress.Plain, 3e6)}})
	if len(got) != len(want) {
		t.Fatalf("%d articles, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].data != want[i].data {
			t.Fatalf("article %d differs", i)
		}
	}
}

func TestSynthIsRecipes(t *testing.T) {
	for _, r := range readAll(t, Options{Args: []string{"synth://recipes?docs=2000"}}) {
		fields, err := csv.NewReader(strings.NewReader(r.data)).Read()
		if err != nil || len(fields) != len(r.Columns) {
			t.Fatalf("%v in %s", err, r.data)
		}
		for _, i := range []int{2, 3, 6} {
			var list []string
			if err := json.Unmarshal([]byte(fields[i]), &list); err != nil || len(list) == 0 {
				t.Fatalf("%v in %s", err, fields[i])
			}
		}
	}
}

// The statistics of language: Zipf's law, lengths in the right range, several scripts, valid UTF-8.
func TestSynthStatistics(t *testing.T) {
	counts := map[string]int{}
	scripts := map[string]int{}
	words, letters, documents, size, numbers := 0, 0, 0, 0, 0
	for _, r := range readAll(t, Options{Args: []string{"synth://wikitext?bytes=8MB"}}) {
		documents++
		size += len(r.data)
		if !utf8.ValidString(r.data) {
			t.Fatal("ill-formed")
		}
		if len(r.data) > 60<<10 {
			t.Errorf("a document of %d bytes", len(r.data))
		}
		for w := range strings.FieldsSeq(r.data) {
			first, _ := utf8.DecodeRuneInString(w)
			switch {
			case unicode.IsDigit(first):
				numbers++
			case unicode.IsLetter(first):
				words++
				letters += utf8.RuneCountInString(w)
				counts[strings.ToLower(w)]++
				for name, table := range map[string]*unicode.RangeTable{"Cyrillic": unicode.Cyrillic,
					"Greek": unicode.Greek, "Han": unicode.Han, "Arabic": unicode.Arabic,
					"Hiragana": unicode.Hiragana} {
					if unicode.Is(table, first) {
						scripts[name]++
					}
				}
			}
		}
	}
	if len(counts) < 25_000 {
		t.Errorf("%d different words", len(counts))
	}
	// A word of rank r has a share of 1/(r + 2.7), so rank 1 is about 28 times as frequent as rank
	// 100.
	order := make([]int, 0, len(counts))
	for _, n := range counts {
		order = append(order, n)
	}
	slices.SortFunc(order, func(a, b int) int { return b - a })
	if ratio := float64(order[0]) / float64(order[99]); ratio < 15 || ratio > 60 {
		t.Errorf("the first word is %.1f times as frequent as the hundredth", ratio)
	}
	if ratio := float64(order[99]) / float64(order[9999]); ratio < 50 || ratio > 200 {
		t.Errorf("the hundredth word is %.1f times as frequent as the 10,000th", ratio)
	}
	for name, c := range map[string]struct{ got, low, high float64 }{
		"letters a word":   {float64(letters) / float64(words), 4, 6},
		"bytes a document": {float64(size) / float64(documents), 10_000, 15_000},
		"numbers a word":   {float64(numbers) / float64(words), 0.02, 0.06},
		"scripts":          {float64(len(scripts)), 5, 5},
		"foreign words, all": {float64(scripts["Cyrillic"] + scripts["Greek"] + scripts["Han"] + scripts["Arabic"] +
			scripts["Hiragana"]), float64(words) / 200, float64(words) / 40},
	} {
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %.3f, want %g to %g", name, c.got, c.low, c.high)
		}
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	for _, args := range []string{"synth://wikitext", "synth://recipes", synthFile(t, WikiText, decompress.Plain, 4e6),
		synthFile(t, Recipes, decompress.Plain, 1e6), synthFile(t, JSONL, decompress.Plain, 1e6)} {
		r, err := openSet(t, Options{Args: []string{args}}).Reader(Position{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		buf := make([]byte, 0, 256<<10)
		var rec Record
		next := func() {
			if _, err := r.Next(buf, &rec); err != nil {
				t.Fatal(err)
			}
			r.Position()
		}
		next()
		if n := testing.AllocsPerRun(200, next); n > 0 {
			t.Errorf("%s: %v allocations a record", args, n)
		}
	}
}

// I3, for records far beyond every limit: 16 MB in one line, one string, one field.
func TestHugeRecordsInBoundedMemory(t *testing.T) {
	const size = 16 << 20
	fill := func(c string) io.Reader { return io.LimitReader(&repeated{text: []byte(c)}, size) }
	for _, c := range []struct {
		name    string
		o       Options
		src     io.Reader
		bytes   int
		rejects int
	}{
		{"line", Options{Format: Text}, fill("lorem ipsum "), size, 0},
		{"file", Options{Format: Document}, fill("lorem ipsum\n"), size, 0},
		{"article", Options{Format: WikiText}, io.MultiReader(strings.NewReader(" = A = \n \n"),
			fill("lorem ipsum\n")), size + 10, 0},
		{"json", Options{Format: JSONL, Framing: Framing{TextField: "text"}}, io.MultiReader(strings.NewReader(`{"n":1,"text":"`),
			fill(`lorem ipsum `), strings.NewReader(`"}`)), size, 0},
		{"json field beside", Options{Format: JSONL, Framing: Framing{TextField: "text"}},
			io.MultiReader(strings.NewReader(`{"n":"`), fill(`lorem ipsum `), strings.NewReader(`","text":"x"}`)), 1,
			0},
		{"json, whole", Options{Format: JSONL}, io.MultiReader(strings.NewReader(`{"text":"`), fill(`lorem ipsum `),
			strings.NewReader("\"}\n{}")), 2, 1},
		{"csv", Options{Format: CSV}, io.MultiReader(strings.NewReader("a\n\""), fill("lorem, ipsum\n"),
			strings.NewReader("\"\nx\n")), 1, 1},
		{"white space", Options{Format: Text}, io.MultiReader(strings.NewReader("a\n"), fill("    "),
			strings.NewReader("\nx\n")), 2, 0},
		{"whole lines", Options{Format: Text, Framing: Framing{Whole: true}}, io.MultiReader(fill("lorem ipsum "),
			strings.NewReader("\nx\n")), 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Args, c.o.Stdin = []string{"-"}, c.src
			set := openSet(t, c.o)
			r, err := set.Reader(Position{})
			if err != nil {
				t.Fatal(err)
			}
			var rec Record
			buf := make([]byte, 0, 5<<20)
			total, rejects := 0, 0
			for {
				data, err := r.Next(buf, &rec)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(data) > set.opts.MaxPieceBytes {
					t.Fatalf("a piece of %d bytes", len(data))
				}
				if rec.Err != nil {
					rejects++
					if !errors.Is(rec.Err, cause.TooLarge) {
						t.Error(rec.Err)
					}
				}
				total += len(data)
			}
			if total != c.bytes || rejects != c.rejects {
				t.Errorf("%d bytes and %d rejects, want %d and %d", total, rejects, c.bytes, c.rejects)
			}
			if held := int64(r.win.Size()); held > set.MemoryBytes() {
				t.Errorf("the window has %d bytes, more than MemoryBytes says", held)
			}
		})
	}
}

// repeated is text without end.
type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		if r.at++; r.at == len(r.text) {
			r.at = 0
		}
	}
	return len(p), nil
}

func TestRealTextIsUntouched(t *testing.T) {
	name := shared(t, "prose/peps.txt")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(whole) {
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
		}
	}
	for i, r := range readAll(t, Options{Args: []string{name}}) {
		if r.data != lines[i] || r.Ordinal != int64(i) {
			t.Fatalf("line %d: %q, want %q", i, r.data, lines[i])
		}
	}
}

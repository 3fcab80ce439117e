package filter

import (
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/zeebo/xxh3"
)

// TestTableIsAMap compares a table that mostly lies in its file with a map.
func TestTableIsAMap(t *testing.T) {
	effort.OneGoroutine(t)
	fsys := shardtest.New()
	tab := newTable(&scratch{fs: fsys, path: "scratch"}, 16<<10)
	rnd := rand.New(rand.NewPCG(3, 3))
	all := map[entry]bool{}
	byFirst := map[uint64]uint64{}
	for i := range 60000 {
		e := entry{mix(uint64(rnd.IntN(40000))), 1 + uint64(i)}
		if i%2 == 0 { // found by the first word
			value, found, err := tab.get(entry{first: e.first}, 0)
			if err != nil || found != (byFirst[e.first] != 0) || value != byFirst[e.first] {
				t.Fatalf("entry %d: %d, %v, %v, want %d", i, value, found, err, byFirst[e.first])
			}
			if found, err = tab.put(e, 0); err != nil || found != (byFirst[e.first] != 0) {
				t.Fatalf("entry %d: %v, %v", i, found, err)
			}
			if !found {
				byFirst[e.first], all[e] = e.second, true
			}
			continue
		}
		e.first = ^e.first
		e.second = 1 + uint64(rnd.IntN(3)) // found by both
		if found, err := tab.put(e, ^uint64(0)); err != nil || found != all[e] {
			t.Fatalf("entry %d: %v, %v, want %v", i, found, err, all[e])
		}
		all[e] = true
	}
	if len(tab.levels) < 3 || tab.file.file == nil {
		t.Errorf("%d levels: the table hardly left its memory", len(tab.levels))
	}
	if err := tab.file.remove(); err != nil {
		t.Fatal(err)
	}
	if left := fsys.Files(); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}

// corpus makes n texts, a third of them copies of earlier ones, and another third near copies.
func corpus(n int, seed uint64) (texts []string) {
	rnd := rand.New(rand.NewPCG(seed, seed))
	for i := range n {
		words := make([]string, 60+rnd.IntN(100))
		for k := range words {
			words[k] = fmt.Sprintf("w%d", rnd.IntN(5000))
		}
		if i%3 > 0 && i > 0 {
			words = strings.Fields(texts[rnd.IntN(i)])
		}
		if i%3 == 2 {
			words[rnd.IntN(len(words))] = "other"
		}
		texts = append(texts, strings.Join(words, " "))
	}
	return texts
}

// fates adds texts to a Seen, stopping at marks and continuing from there in a new process. Some that it is told to
// expect never come.
func fates(t *testing.T, kind Dedup, texts []string, pool int64, expected int, stops ...int) (out []bool, keys string) {
	t.Helper()
	fsys := shardtest.New()
	open := func() *Seen { return NewSeen(kind, fsys, "log", "log.tmp", pool) }
	s, sketcher := open(), NewSketcher(kind)
	var coming []byte
	size := kind.KeyBytes()
	for i, text := range texts {
		if len(stops) > 0 && i == stops[0] {
			mark, err := s.Sync()
			if err != nil {
				t.Fatal(err)
			}
			for _, lost := range texts[i:min(i+50, len(texts))] { // after the checkpoint
				if _, err := s.Add(sketcher.Append(nil, []byte(lost), nil)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Sync(); err != nil {
				t.Fatal(err)
			}
			fsys = fsys.CrashImage(shardtest.LoseNone, 0)
			s, stops = open(), stops[1:]
			if err := s.Restore(mark); err != nil {
				t.Fatal(err)
			}
		}
		key := sketcher.Append(nil, []byte(text), nil)
		if expected > 0 {
			if len(coming) == 0 {
				for _, next := range texts[i:min(i+expected, len(texts))] {
					coming = sketcher.Append(coming, []byte("left out "+next), nil)
					coming = sketcher.Append(coming, []byte(next), nil)
				}
				s.Expect(i%2 == 0, coming[:len(coming)/size/2*size])
				s.Expect(false, coming[len(coming)/size/2*size:])
			}
			key, coming = coming[size:2*size], coming[2*size:]
		}
		isCopy, err := s.Add(key)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, isCopy)
	}
	r, err := s.Keys()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out, string(data)
}

func TestSeenDependsOnTheDocumentsAlone(t *testing.T) {
	texts := corpus(3000, 1)
	for _, kind := range []Dedup{Exact, Near} {
		want, keys := fates(t, kind, texts, 64<<20, 0)
		for _, c := range []struct {
			pool     int64
			expected int
			stops    []int
		}{{4 << 10, 0, nil}, {32 << 10, 700, []int{1, 2, 900}}, {64 << 20, 1, []int{0, 1500, 2999}}, {32 << 20, 1000, nil}} {
			got, gotKeys := fates(t, kind, texts, c.pool, c.expected, c.stops...)
			if fmt.Sprint(got) != fmt.Sprint(want) || gotKeys != keys {
				t.Errorf("%s with %d bytes of memory, stopped at %v: other documents stay", kind, c.pool, c.stops)
			}
		}
		if kind != Exact {
			continue
		}
		before := map[string]bool{}
		for i, text := range texts {
			if want[i] != before[text] {
				t.Fatalf("document %d: a copy %v, want %v", i, want[i], before[text])
			}
			before[text] = true
		}
	}
}

func TestRestoreRefusesAnotherLog(t *testing.T) {
	fsys := shardtest.New()
	s := NewSeen(Exact, fsys, "log", "log.tmp", 4<<10)
	for i := range 100 {
		if _, err := s.Add(appendHash(nil, fmt.Append(nil, i), nil)); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := s.Sync()
	if err != nil {
		t.Fatal(err)
	}
	fsys.Flip("log", 700, 4)
	if err := NewSeen(Exact, fsys, "log", "log.tmp", 4<<10).Restore(mark); err == nil ||
		!strings.Contains(err.Error(), "not those of the checkpoint") {
		t.Errorf("a flipped bit: %v", err)
	}
	fsys.Put("log", make([]byte, 800))
	if err := NewSeen(Exact, fsys, "log", "log.tmp", 4<<10).Restore(mark); err == nil ||
		!strings.Contains(err.Error(), "byte 800") {
		t.Errorf("half of the log: %v", err)
	}
}

// shingleSet is what a sketch stands for, made in the plainest way from lower-case words.
func shingleSet(text string) map[string]bool {
	words, set := strings.Fields(text), map[string]bool{}
	for i := 0; i+shingleWords <= len(words); i++ {
		set[strings.Join(words[i:i+shingleWords], " ")] = true
	}
	return set
}

func jaccard(a, b map[string]bool) float64 {
	both := 0
	for s := range a {
		if b[s] {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// TestNearAgainstJaccard holds the fates of pairs against their true similarity.
func TestNearAgainstJaccard(t *testing.T) {
	effort.OneGoroutine(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	type count struct{ pairs, dropped int }
	var high, low, far count // above 0.9, below 0.7, below 0.5
	for pair := range 1500 {
		words := make([]string, 200)
		for i := range words {
			words[i] = fmt.Sprintf("p%dw%d", pair, rnd.IntN(400))
		}
		a := strings.Join(words, " ")
		for range 1 + pair%30 {
			words[rnd.IntN(len(words))] = fmt.Sprintf("p%dx%d", pair, rnd.IntN(1<<30))
		}
		b := strings.Join(words, " ")
		got, _ := fates(t, Near, []string{a, b}, 4<<10, 0)
		if got[0] {
			t.Fatal("the first text is a copy")
		}
		j := jaccard(shingleSet(a), shingleSet(b))
		for _, c := range []struct {
			in bool
			to *count
		}{{j > 0.9, &high}, {j < 0.7, &low}, {j < 0.5, &far}} {
			if c.in {
				c.to.pairs++
				if got[1] {
					c.to.dropped++
				}
			}
		}
	}
	t.Logf("dropped: %+v above 0.9, %+v below 0.7, %+v below 0.5", high, low, far)
	if high.pairs < 50 || 100*high.dropped < 98*high.pairs {
		t.Errorf("of %d pairs above 0.9 only %d were found", high.pairs, high.dropped)
	}
	if low.pairs < 300 || 100*low.dropped > low.pairs || far.dropped > 0 {
		t.Errorf("of %d pairs below 0.7 %d were dropped, of %d below 0.5 %d", low.pairs, low.dropped, far.pairs,
			far.dropped)
	}
}

func TestSketchReadsWords(t *testing.T) {
	sketch := func(text string) string { return string(NewSketcher(Near).Append(nil, []byte(text), nil)) }
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"The quick brown fox jumps over it", "the QUICK, brown fox; jumps: over it!", true},
		{"The quick brown fox jumps over it", "The quick brown fox jumped over it", false},
		{"ÉCOLE à Noël est là encore", "école à noël est là encore", true},
		{"今日は良い天気ですね", "今日は、良い天気ですね。", true},
		{"今日は良い天気ですね", "今日は悪い天気ですね", false},
		{"yes", "Yes.", true}, {"yes", "no", false}, {"yes yes", "yes", false},
		{"a b", "ab", false}, {"", "", true}, {"?!", "!?", false}, {"a b c d e", "b c d e a", false},
	} {
		if got := sketch(c.a) == sketch(c.b); got != c.same {
			t.Errorf("%q and %q have the same sketch: %v", c.a, c.b, got)
		}
	}
	// A prompt and its target are not one text.
	pair := NewSketcher(Near).Append(nil, []byte("one two three"), []byte("four five six"))
	if string(pair) == sketch("one two threefour five six") {
		t.Error("the last word of a prompt continues into the target")
	}
	// Datasets keep keys: they may not change.
	sum := xxh3.New()
	for _, text := range append(corpus(50, 2), "", "短い", "a Bé ß 123") {
		for _, kind := range []Dedup{Exact, Near} {
			_, _ = sum.Write(NewSketcher(kind).Append(nil, []byte(text), []byte(text[:len(text)/2])))
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != "1eafa6b0b3f0c5bd" {
		t.Errorf("keys changed: %s", got)
	}
}

func BenchmarkSketch(b *testing.B) {
	text := []byte(strings.Join(corpus(100, 3), " "))
	for _, kind := range []Dedup{Exact, Near} {
		b.Run(string(kind), func(b *testing.B) {
			s, dst := NewSketcher(kind), []byte(nil)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				dst = s.Append(dst[:0], text, nil)
			}
		})
	}
}

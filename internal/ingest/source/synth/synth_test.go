package synth

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"7": 7, "1e6": 1e6, "64MiB": 64 << 20, "2GB": 2e9, "3e2kB": 300_000,
		"0":  0,
		"-1": 0, "1e30": 0, "x": 0, "": 0, "4e18": 4e18, "10e18": 0, "9999999TiB": 0} {
		if got, ok := positive(text); ok != (want > 0) || ok && got != want {
			t.Errorf("size %q: %d, %t", text, got, ok)
		}
	}
}

// The alias cells give every word its weight.
func TestAliasCells(t *testing.T) {
	tab := tables()
	odds := make([]float64, numWords)
	for i, cell := range tab.alias {
		own := float64(cell>>wordBits) / (1 << 17)
		odds[i] += own
		odds[cell&(numWords-1)] += 1 - own
	}
	sum := 0.0
	for r := range numWords {
		sum += 1 / (float64(r) + 2.7)
	}
	for _, r := range []int{0, 1, 10, 100, 1000, 10_000, numWords - 1} {
		if want := numWords / (float64(r) + 2.7) / sum; odds[r] < 0.98*want || odds[r] > 1.02*want {
			t.Errorf("rank %d: %g, want %g", r, odds[r], want)
		}
	}
}

func TestTablesHoldWhatTableBytesSays(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tab := new(wordTables)
	tab.fillWords()
	tab.fillAlias()
	runtime.ReadMemStats(&after)
	t.Logf("%d KiB", (after.TotalAlloc-before.TotalAlloc)>>10)
	if made := after.TotalAlloc - before.TotalAlloc; made > TableBytes {
		t.Errorf("making the tables takes %d bytes, TableBytes says %d", made, TableBytes)
	}
	runtime.KeepAlive(tab)
}

// The first wrong parameter by name is reported, whatever the order of a map.
func TestParseReportsOneMistake(t *testing.T) {
	for range 20 {
		if _, err := Parse("synth://wikitext?seeds=1&docs=0&bytes=x"); err == nil ||
			err.Error() != "bytes=x is not one number above 0" {
			t.Fatal(err)
		}
	}
}

// A document depends on the seed and its number alone, and appending leaves what was there.
func TestDocuments(t *testing.T) {
	for _, address := range []string{"synth://wikitext?seed=7", "synth://recipes?seed=7"} {
		s, err := Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		other := *s
		other.Seed = 8
		all, total := []byte("before"), int64(0)
		const docs = 400
		for n := range int64(docs) {
			begin := len(all)
			all = s.Append(all, n)
			again := s.Append(nil, n)
			if string(all[begin:]) != string(again) || string(again) == string(other.Append(nil, n)) {
				t.Fatalf("%s: document %d depends on more, or less, than its number and the seed", address, n)
			}
			if !utf8.Valid(again) || len(again) == 0 {
				t.Fatalf("%s: document %d: %q", address, n, again)
			}
			total += int64(len(again))
		}
		estimate := (&Spec{Kind: s.Kind, Docs: 1}).TextBytes()
		if mean := total / docs; mean < estimate*8/10 || mean > estimate*12/10 {
			t.Errorf("%s: a document has %d bytes on average, the estimate says %d", address, mean, estimate)
		}
		if !strings.HasPrefix(string(all), "before") {
			t.Errorf("%s: what was there changed", address)
		}
	}
}

func TestLimits(t *testing.T) {
	for address, want := range map[string]struct {
		size, estimate int64
		ended          [3]bool // before document 10 at byte 50, document 9 at byte 1000, document 0
	}{
		"synth://recipes":                    {-1, -1, [3]bool{}},
		"synth://recipes?docs=10":            {-1, 8300, [3]bool{true, false, false}},
		"synth://recipes?bytes=1000":         {1000, 1000, [3]bool{false, true, false}},
		"synth://recipes/?docs=10&bytes=1e3": {1000, 1000, [3]bool{true, true, false}},
		"synth://recipes?docs=1&bytes=1e6":   {1e6, 830, [3]bool{true, true, false}},
	} {
		s, err := Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		ended := [3]bool{s.Ended(10, 50), s.Ended(9, 1000), s.Ended(0, 0)}
		if s.Size() != want.size || s.TextBytes() != want.estimate || ended != want.ended {
			t.Errorf("%s: size %d, estimate %d, ended %v", address, s.Size(), s.TextBytes(), ended)
		}
	}
	for _, address := range []string{"synth://poems", "synth://wikitext/a", "synth://joe@wikitext",
		"synth://wikitext#a",
		"synth://wikitext?seed=-1", "synth://wikitext?seed=1&seed=2", "synth://wikitext?color=1",
		"synth://wikitext?%zz",
		"synth://\x7f"} {
		if s, err := Parse(address); err == nil {
			t.Errorf("%s: %+v", address, s)
		}
	}
}

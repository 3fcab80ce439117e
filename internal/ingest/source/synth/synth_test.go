package synth

import (
	"runtime"
	"testing"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"7": 7, "1e6": 1e6, "64MiB": 64 << 20, "2GB": 2e9, "3e2kB": 300_000, "0": 0,
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

package unigram

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/enginetest"
)

// TestSettled compares the search that writes what is decided as it goes with the one that does so
// at the end.
func TestSettled(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	fused, byBytes := 0, 0
	for range 60 {
		cfg, letters := randomConfig(t, rng, false)
		cfg.Split, cfg.Nmt, cfg.PrefixFirst, cfg.StripRight = SplitNone, false, false, false
		size := []float64{1, 1, 0.001, 5000, 40000}[rng.IntN(5)]
		for i := range cfg.Scores {
			cfg.Scores[i] = float64(float32(cfg.Scores[i] * size))
		}
		cfg.NoMatch = make([]bool, len(cfg.Pieces))
		for id, p := range cfg.Pieces {
			if bytes.HasPrefix(p, []byte("<")) {
				cfg.NoMatch[id] = true
			} else if rng.IntN(6) == 0 {
				cfg.UserDefined = append(cfg.UserDefined, uint32(id))
			}
		}
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := m.NewEncoder(1)
		for range 30 {
			word := []byte(metaspace + strings.ReplaceAll(enginetest.Text(rng, letters), " ", metaspace))
			want := e.appendSearch32(nil, word, len(word)+1)
			for _, n := range []int{1, 1 + rng.IntN(20)} {
				if got := e.appendSearch32(nil, word, n); !slices.Equal(got, want) {
					t.Fatalf("%q, settled after %d bytes:\n got %v\nwant %v", word, n, got, want)
				}
			}
			if slices.Contains(want, 0) {
				fused++
			} else if cfg.ByteFallback {
				byBytes++
			}
		}
	}
	if fused < 100 || byBytes < 100 {
		t.Errorf("unknown characters in %d and %d texts only", fused, byBytes)
	}
}

// TestSettledMemory reports that the search of a long text needs nodes for a stretch of it.
func TestSettledMemory(t *testing.T) {
	m, err := New(Config{
		Pieces:  [][]byte{[]byte("<unk>"), []byte(metaspace + "ab"), []byte("a"), []byte("b")},
		Scores:  []float64{0, -1.5, -2, -2.25},
		NoMatch: []bool{true}, Split: SplitNone,
	})
	if err != nil {
		t.Fatal(err)
	}
	e := m.NewEncoder(0)
	if ids := e.Append(nil, []byte(strings.Repeat(metaspace+"ab", 1<<18)), true, true); len(ids) != 1<<18 {
		t.Fatalf("%d ids", len(ids))
	}
	if cap(e.nodes) == 0 || cap(e.nodes) > 2*keepScratch {
		t.Errorf("%d nodes", cap(e.nodes))
	}
}

// Package enginetest holds the tests that every engine has to pass, as a Suite, and what the engines' own
// tests share: the reference ids, hostile and random texts.
package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// Model is an engine's *Model, and E its *Encoder.
type Model[E Encoder] interface {
	NewEncoder(cacheBytes int) E
	SafeCut(text []byte) int
}

// Suite is one engine as the tests that every engine has to pass see it. C is the engine's Config.
type Suite[C any, M Model[E], E Encoder] struct {
	New func(C) (M, error)

	// Goldens are the tokenizers with reference ids that the engine is made for, and Golden reads one.
	Goldens []string
	Golden  func(t testing.TB, name string) (C, []Added)

	// Random returns a small vocabulary and what makes texts for it. A wide one has ids of more than 16 bits.
	Random func(t testing.TB, rng *rand.Rand, wide bool) (C, func() string)
	// Reference returns a slow and obvious encoder of whole texts.
	Reference func(C, M) func(text string) []uint32
	Rounds    [3]int // vocabularies that are compared with Reference, as effort.Of takes them
	Texts     int    // each vocabulary's
	AnyBytes  bool   // Reference takes what is not UTF-8
	SlowFrom  int    // bytes of a fuzzed text from which on Reference takes too long, 0 if none

	// Refused are configurations of which New makes no model.
	Refused map[string]C

	loaded sync.Map // keys are names
}

// Run runs the tests.
func (s *Suite[C, M, E]) Run(t *testing.T) {
	for _, name := range s.Goldens {
		t.Run(name, func(t *testing.T) { s.testGolden(t, name) })
	}
	t.Run("Reference", s.testReference)
	t.Run("Refused", func(t *testing.T) {
		for name, c := range s.Refused {
			if _, err := s.New(c); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	})
}

// Load returns the model of one of Goldens, which is made once.
func (s *Suite[C, M, E]) Load(t testing.TB, name string) M {
	t.Helper()
	return s.load(t, name).model
}

type golden[M any] struct {
	model M
	added []Added
}

func (s *Suite[C, M, E]) load(t testing.TB, name string) golden[M] {
	t.Helper()
	g, ok := s.loaded.Load(name)
	if !ok {
		c, added := s.Golden(t, name)
		g, _ = s.loaded.LoadOrStore(name, golden[M]{s.model(t, c), added})
	}
	return g.(golden[M])
}

func (s *Suite[C, M, E]) model(t testing.TB, c C) M {
	t.Helper()
	m, err := s.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *Suite[C, M, E]) tokenizer(t testing.TB, name string) tokenizer {
	t.Helper()
	g := s.load(t, name)
	return newTokenizer(func(cacheBytes int) Encoder { return g.model.NewEncoder(cacheBytes) }, g.added)
}

func (s *Suite[C, M, E]) testGolden(t *testing.T, name string) {
	k := s.tokenizer(t, name)
	with := func(cacheBytes int) func(dst []uint32, text []byte) []uint32 {
		e := k.newEncoder(cacheBytes)
		return func(dst []uint32, text []byte) []uint32 { return k.encode(e, dst, text) }
	}
	t.Run("Cases", func(t *testing.T) { CheckCases(t, name, with(0)) })
	t.Run("Corpora", func(t *testing.T) {
		if testing.Short() {
			t.Skip("short: package tokenize hashes the same corpora")
		}
		for _, cacheBytes := range []int{0, 1 << 18} {
			CheckCorpora(t, name, with(cacheBytes))
		}
	})
	t.Run("NoAllocs", func(t *testing.T) { checkNoAllocs(t, k) })
}

// checkNoAllocs checks that encoding documents a second time allocates nothing.
func checkNoAllocs(t *testing.T, k tokenizer) {
	docs := Documents(refdata.Read(t, "corpora/multilingual/tldr.txt")[:256<<10])
	for _, cacheBytes := range []int{1, 0} {
		e := k.newEncoder(cacheBytes)
		var ids []uint32
		run := func() {
			for _, d := range docs {
				ids = k.encode(e, ids[:0], d)
			}
		}
		run()
		if n := testing.AllocsPerRun(2, run); n != 0 {
			t.Errorf("%v allocations for %d documents, cache of %d bytes", n, len(docs), cacheBytes)
		}
	}
}

// testReference compares the engine with the reference on random texts: at once, in pieces cut where SafeCut
// says, and with caches of several sizes filled by other texts.
func (s *Suite[C, M, E]) testReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range effort.Of(s.Rounds[0], s.Rounds[1], s.Rounds[2]) {
		c, text := s.Random(t, rng, round%25 == 0)
		m := s.model(t, c)
		e, want := m.NewEncoder([]int{1, 1 << 20, 0}[round%3]), s.Reference(c, m)
		for range s.Texts {
			text := text()
			if err := check(rng, e, m.SafeCut, want(text), text); err != nil {
				t.Fatalf("vocabulary %d, %q: %v", round, text, err)
			}
		}
	}
}

func check(rng *rand.Rand, e Encoder, safeCut func([]byte) int, want []uint32, text string) error {
	if got := e.Append([]uint32{7}, []byte(text), true, true); got[0] != 7 || !slices.Equal(got[1:], want) {
		return fmt.Errorf("\n got %v\nwant 7 and %v", got, want)
	}
	cut := rng.IntN(len(text) + 1)
	n := safeCut([]byte(text[:cut]))
	if n < 0 || n > cut {
		return fmt.Errorf("SafeCut of %d bytes is %d", cut, n)
	}
	if n == 0 {
		return nil
	}
	got := e.Append(nil, []byte(text[:n]), true, false)
	if got = e.Append(got, []byte(text[n:]), false, true); !slices.Equal(got, want) {
		return fmt.Errorf("cut at %d:\n got %v\nwant %v", n, got, want)
	}
	return nil
}

// Fuzz compares the engine with the reference on any text, with the random vocabulary of a seed.
func (s *Suite[C, M, E]) Fuzz(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		_, text := s.Random(f, rng, false)
		f.Add(rng.Uint64(), text())
	}
	for i, h := range HostileTexts(700) {
		f.Add(uint64(i), string(h.Text))
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		c, _ := s.Random(t, rand.New(rand.NewPCG(seed, 0)), false)
		m := s.model(t, c)
		e := m.NewEncoder(1)
		var want []uint32
		compared := (s.AnyBytes || utf8.ValidString(text)) && (s.SlowFrom == 0 || len(text) < s.SlowFrom)
		if compared {
			want = s.Reference(c, m)(text)
		}
		for range 2 { // what the cache learns changes nothing
			if got := e.Append(nil, []byte(text), true, true); compared && !slices.Equal(got, want) {
				t.Fatalf("%q:\n got %v\nwant %v", text, got, want)
			}
		}
	})
}

package plain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/reference"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// randomVocab makes tokens of a small alphabet; single characters come first, some are left out.
func randomVocab(r *rand.Rand, extra ...string) (tokens [][]byte, ids map[string]uint32) {
	ids = map[string]uint32{}
	add := func(s string) {
		if _, ok := ids[s]; !ok && s != "" {
			ids[s] = uint32(len(tokens))
			tokens = append(tokens, []byte(s))
		}
	}
	for _, s := range extra {
		add(s)
	}
	for _, s := range []string{"a", "b", "c", "é", "漢"} {
		if r.IntN(6) > 0 {
			add(s)
		}
	}
	for range r.IntN(30) {
		if n := len(tokens); n > len(extra)+1 {
			add(string(tokens[len(extra)+r.IntN(n-len(extra))]) + string(tokens[len(extra)+r.IntN(n-len(extra))]))
		}
	}
	return tokens, ids
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(20) {
		b.WriteString([]string{"a", "b", "c", "é", "漢", "x", "aa", "ab", "abc"}[r.IntN(9)])
	}
	return b.String()
}

// TestBPEReference compares the heap with the definition.
func TestBPEReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		extra := []string{"<unk>"}
		fallback := r.IntN(2) == 0
		if fallback {
			for b := range 200 + 56*r.IntN(2) {
				extra = append(extra, fmt.Sprintf("<0x%02X>", b))
			}
		}
		tokens, ids := randomVocab(r, extra...)
		ref := &reference.BPE{Vocab: ids, FuseUnk: r.IntN(2) == 0, ByteFallback: fallback, IgnoreMerges: r.IntN(3) == 0}
		cfg := spec.BPE{Vocab: vocab.New(tokens), Unk: -1, FuseUnk: ref.FuseUnk, ByteFallback: fallback,
			IgnoreMerges: ref.IgnoreMerges}
		if r.IntN(3) > 0 {
			ref.Unk, cfg.Unk = "<unk>", 0
		}
		for range r.IntN(40) {
			a, b := tokens[r.IntN(len(tokens))], tokens[r.IntN(len(tokens))]
			if c, ok := ids[string(a)+string(b)]; ok {
				ref.Merges = append(ref.Merges, [2]string{string(a), string(b)})
				cfg.Merges = append(cfg.Merges, vocab.Merge{Left: ids[string(a)], Right: ids[string(b)], Result: c})
			}
		}
		m := NewBPE(&cfg)
		var s Scratch
		for range 5 {
			text := randomText(r)
			want, got := ref.Encode(text), m.Append(nil, []byte(text), &s)
			if !slices.Equal(got, want) {
				t.Fatalf("round %d, %q with merges %v: %v, want %v", round, text, ref.Merges, got, want)
			}
		}
	}
}

func TestWordPieceReference(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		tokens, ids := randomVocab(r, "<unk>", "##a", "##b", "##ab", "##c漢")
		limit := 5 + r.IntN(100)
		m := NewWordPiece(&spec.WordPiece{Vocab: vocab.New(tokens), Prefix: "##", MaxChars: uint64(limit)})
		var s Scratch
		text := randomText(r)
		want, got := reference.WordPiece(ids, ids["<unk>"], "##", limit, text), m.Append(nil, []byte(text), &s)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestUnigramReference(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		tokens, ids := randomVocab(r, "<unk>")
		scores := make([]float64, len(tokens))
		for i := range scores {
			scores[i] = -float64(r.IntN(6)) // ties are the point
		}
		m, err := NewUnigram(&spec.Unigram{Vocab: vocab.New(tokens), Scores: scores})
		if err != nil {
			t.Fatal(err)
		}
		var s Scratch
		text := randomText(r)
		want, got := (&reference.Unigram{Vocab: ids, Scores: scores}).Encode(text), m.Append(nil, []byte(text), &s)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
}

package bytebpe

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWarm: an encoder that fills its cache in the middle of a text gives the ids of one that was
// filled before, for models that merge and for those that first look words up.
func TestWarm(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	ranks := loadRanks(t, "r50k_base.tiktoken", GPT2)
	merging := newModel(t, randomConfig(r, GPT2, false))
	ranked := newModel(t, randomConfig(r, GPT2, true))
	for _, m := range []*Model{ranks, merging, ranked} {
		warm, cold := m.NewEncoder(0), m.NewEncoder(0)
		warm.Warm()
		var text []byte
		for i := 0; cold.coldMisses > 0 || i%500 > 0; i++ {
			if text = append(text[:0], randomWords(r, 200)...); i%2 == 0 {
				token, _ := m.vocab.Token(r.Uint32N(uint32(m.vocab.Len())))
				text = append(text, token...)
			}
			want, got := warm.Append(nil, text, true, true), cold.Append(nil, text, true, true)
			if !slices.Equal(got, want) {
				t.Fatalf("text %d, %q:\n got %v\nwant %v", i, text, got, want)
			}
			if i > 20000 {
				t.Fatalf("the vocabulary is not in the cache after %d texts", i)
			}
		}
		p := cold.probeOf([]byte(" the"))
		if m == ranks && cold.find(&p) == nil {
			t.Error("a frequent token is not cached")
		}
	}
}

// TestUnmerged: merges make every token that is not looked up, and only ranked vocabularies leave any out.
func TestUnmerged(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	models := []*Model{loadRanks(t, "r50k_base.tiktoken", GPT2), loadRanks(t, "cl100k_base.tiktoken", CL100K),
		loadRanks(t, "o200k_base.tiktoken", O200K)}
	for i, m := range models {
		t.Logf("model %d looks up words of the lengths %064b", i, m.unmerged())
		if m.unmerged()&0xfe != 0 {
			t.Errorf("model %d looks up short words", i)
		}
	}
	for range 30 {
		models = append(models, newModel(t, randomConfig(r, GPT2, true)))
	}
	left := 0
	for i, m := range models {
		g := m.NewEncoder(0)
		for id := range uint32(m.vocab.Len()) {
			text, _ := m.vocab.Token(id)
			if len(text) == 0 || m.unmerged()&lengthBit(len(text)) != 0 {
				continue
			}
			left++
			if got := g.appendMerged(nil, text); !slices.Equal(got, []uint32{id}) {
				t.Fatalf("model %d: token %d, %q, merges to %v", i, id, text, got)
			}
		}
	}
	if left < 300_000 {
		t.Errorf("only %d tokens are left to merges", left)
	}
	if m := newModel(t, randomConfig(r, GPT2, false)); m.unmerged() != anyLength {
		t.Error("a model that is not ranked looks up only some words")
	}
}

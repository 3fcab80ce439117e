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
	for _, m := range []*Model{ranks, merging} {
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
		if ranked := m == ranks; ranked && cold.find(&p) == nil {
			t.Error("a frequent token is not cached")
		}
	}
}

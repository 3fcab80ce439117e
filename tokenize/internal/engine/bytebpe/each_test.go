package bytebpe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
)

// TestAppendEach: texts that share windows have the ids that they have alone, whatever room there is for them.
func TestAppendEach(t *testing.T) {
	for _, name := range []string{"gpt2", "cl100k-hf"} {
		m := suite.Load(t, name)
		variants(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(8, 3))
			one, each := m.NewEncoder(0), m.NewEncoder(0)
			for range effort.Of(20, 100, 1000) {
				var texts [][]byte
				for range 1 + r.IntN(200) {
					n := r.IntN(100)
					if r.IntN(20) == 0 {
						n *= r.IntN(100)
					}
					texts = append(texts, randomText(r, n))
				}
				dst := make([]uint32, 1, 1+r.IntN(1000))
				var want []uint32
				from, next := 1, 0
				got := each.AppendEach(dst, texts, func(i int, dst []uint32) []uint32 {
					if want = one.Append(want[:0], texts[i], true, true); i != next || !slices.Equal(dst[from:], want) {
						t.Fatalf("text %d, %q: %v, want %v", i, texts[i], dst[from:], want)
					}
					dst = append(dst, 7)
					from, next = len(dst), i+1
					return dst
				})
				if next != len(texts) || len(got) != from {
					t.Fatalf("%d of %d texts, %d of %d ids", next, len(texts), from, len(got))
				}
			}
			if each.scanned > 3*one.scanned {
				t.Errorf("%d bytes scanned, one by one %d", each.scanned, one.scanned)
			}
		})
	}
}

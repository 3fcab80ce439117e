package bytebpe

import (
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
)

// checkInside compares the cuts inside the words of a window with their definition: a long word, a
// character of three bytes or more, and no token that lies across. It returns the number of cuts.
func checkInside(t *testing.T, e *Encoder, text []byte) (cuts int) {
	t.Helper()
	if len(text) == 0 {
		return 0
	}
	n := e.fill(text)
	e.scan(n)
	word := [2]int{}
	for p := 1; p < n; p++ {
		if e.inside[p/blockBytes]>>(p%blockBytes)&1 == 0 {
			continue
		}
		cuts++
		for p >= word[1] {
			word = [2]int{word[1], e.m.tokenEnd(e.buf[:n], word[1])}
		}
		long := word[1]-word[0] > shortBytes || word[1] == n // the padding may continue it
		if p == word[0] || !long || e.buf[p] < 0xe0 {
			t.Fatalf("%q: the word %q is cut at byte %d", text[:n], text[word[0]:word[1]], p-word[0])
		}
		for from := max(word[0], p-40); from < p; from++ {
			for to := p + 1; to <= min(word[1], p+40); to++ {
				if id, ok := e.m.vocab.ID(text[from:to]); ok {
					t.Fatalf("%q: a word is cut inside token %d, %q", text[:n], id, text[from:to])
				}
			}
		}
	}
	return cuts
}

// scripts are letters of scripts with characters of three bytes.
var scripts = []string{"कखगघचछजझटठडढतदनपबमयरलवशसह", "กขคงจชดตถทนบปพมยรลวสหอเแโไ", "的一是不了人我在有他这中大来上国日の", "あいうえおかがきくけこさしすせそたちってとなにのはまやらりるをんアイウスンー"}

// randomScript returns long words of one script, with a space or another character in between.
func randomScript(r *rand.Rand, n int) []byte {
	letters := []rune(scripts[r.IntN(len(scripts))])
	var out []byte
	for len(out) < n {
		if r.IntN(12) == 0 {
			out = append(out, pieces[r.IntN(len(pieces))]...)
		}
		out = append(out, string(letters[r.IntN(len(letters))])...)
	}
	return out
}

// TestCutInside: words are cut, and only where they may be, with vocabularies that join few
// characters, many or random ones; not where parts of words could be tokens that no merge makes.
func TestCutInside(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	models := []*Model{loadRanks(t, "r50k_base.tiktoken", GPT2), loadRanks(t, "o200k_base.tiktoken", O200K)}
	for range 10 {
		models = append(models, newModel(t, randomConfig(r, GPT2, false)))
	}
	for i, m := range models {
		e, cuts := m.NewEncoder(1), 0
		for range effort.Of(25, 100, 5000) {
			cuts += checkInside(t, e, randomScript(r, r.IntN(1500)))
		}
		if may := !m.missing && (m.ranked || !m.ignoreMerges); (cuts > 0) != may {
			t.Errorf("model %d cuts words %d times", i, cuts)
		}
	}
}

func FuzzCutInside(f *testing.F) {
	r := rand.New(rand.NewPCG(10, 10))
	for range 50 {
		f.Add(randomScript(r, 300))
		f.Add(randomText(r, 300))
	}
	var m *Model
	for m == nil || m.joined() == nil {
		m = newModel(f, randomConfig(r, GPT2, false))
	}
	e := m.NewEncoder(1)
	f.Fuzz(func(t *testing.T, text []byte) { checkInside(t, e, text) })
}

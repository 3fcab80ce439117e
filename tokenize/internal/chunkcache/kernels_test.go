//go:build !purego && (amd64 || arm64)

package chunkcache

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every kernel must give what its plain twin gives.
func TestClassifyTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		w := NewWindow()
		w.Reset(byte(rng.Uint32()))
		n := 1 + rng.IntN(len(w.Free()))
		for i := range n {
			b := byte(rng.Uint32())
			if round%3 != 0 {
				b &= 0x7F
			}
			w.Free()[i] = b
		}
		w.Commit(n)
		var tab Tables
		for c := range tab.From {
			from, to := rng.Uint64(), rng.Uint64() // two draws of each bit: a quarter of them set
			tab.From[c] = byte(from&(from>>32)) & 0x7F
			tab.To[c] = byte(to & (to >> 32))
		}
		words := w.Words()
		classifyGo(w, &tab, words)
		cut, gap, non := slices.Clone(w.Cut[:words]), slices.Clone(w.Gap[:words]), slices.Clone(w.NonASCII[:words])
		for _, level := range kernelLevels() {
			clear(w.Cut)
			clear(w.Gap)
			clear(w.NonASCII)
			useKernels(level, func() { classify(w, &tab, words) })
			if !slices.Equal(cut, w.Cut[:words]) || !slices.Equal(gap, w.Gap[:words]) ||
				!slices.Equal(non, w.NonASCII[:words]) {
				t.Fatalf("%s differs from classifyGo for %q", level, w.Text())
			}
		}
	}
}

func TestKeyAndProbeTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c := New(MinBytes, 0xFFFF)
	text := make([]byte, 4096+64)
	for round := range 1000 {
		for i := range text {
			text[i] = "ab\x80 \x00"[rng.IntN(4+round&1)]
			if round%3 == 2 && i >= 8 {
				text[i] = text[i-8] // the halves of one chunk are those of others
			}
		}
		n := 1 + rng.IntN(batch)
		for i := range n {
			start := uint32(rng.IntN(4000))
			c.spans[i] = Span{start, start + 1 + uint32(rng.IntN(20))}
		}
		rules := c.rule(round&1 != 0)
		c.keysGo(&text[0], n, rules)
		want := c.recs
		clear(c.recs[:])
		c.keys(&text[0], n, rules)
		if !slices.Equal(want[:n], c.recs[:n]) {
			t.Fatal("keys differ")
		}
		for i := 0; i < n; {
			dst := make([]uint32, 0, n*maxCopy+maxCopy)
			next, got := c.probeGo(dst, i, n)
			wantIDs := slices.Clone(got)
			next2, got := c.probe(dst, i, n)
			// The kernel also takes short values from the ring; the plain twin leaves those to
			// lookup.
			for next < next2 {
				var ok bool
				if wantIDs, ok = c.lookup(wantIDs, &c.recs[next]); !ok {
					t.Fatal("the kernel found what lookup does not")
				}
				var more []uint32
				next, more = c.probeGo(make([]uint32, 0, n*maxCopy+maxCopy), next+1, n)
				wantIDs = append(wantIDs, more...)
			}
			if next != next2 || !slices.Equal(wantIDs, got) {
				t.Fatalf("probe stops at %d with %v, want %d with %v", next2, got, next, wantIDs)
			}
			i = next
			if i < n {
				if _, ok := c.lookup(nil, &c.recs[i]); !ok && c.recs[i].lo != ^uint64(0) {
					ids := make([]uint32, rng.IntN(25))
					for k := range ids {
						ids[k] = rng.Uint32() & 0xFFFF
					}
					c.insert(&c.recs[i], ids)
				}
				i++
			}
		}
	}
}

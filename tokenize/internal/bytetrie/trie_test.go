package bytetrie

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/effort"
)

func TestAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		want := map[string]uint32{}
		var keys [][]byte
		var values []uint32
		alphabet := 1 + rng.IntN(1<<rng.IntN(9))
		alphabet = min(alphabet, 255)
		n := 1 << rng.IntN(13)
		for range n {
			k := make([]byte, rng.IntN(9)*(1+rng.IntN(3)))
			for i := range k {
				k[i] = byte(rng.IntN(alphabet + 1))
			}
			v := rng.Uint32()
			keys, values = append(keys, k), append(values, v)
			if len(k) > 0 {
				want[string(k)] = v
			}
		}
		start := time.Now()
		tr, err := New(keys, values)
		if err != nil {
			t.Fatal(err)
		}
		if round == 29 {
			t.Logf("%d keys, %d bytes, %v", n, tr.Bytes(), time.Since(start))
		}
		for k, v := range want {
			if got, ok := tr.Find([]byte(k)); !ok || got != v {
				t.Fatalf("Find(%q) = %d, %v; want %d", k, got, ok, v)
			}
		}
		for range 20000 {
			k := make([]byte, 1+rng.IntN(9))
			for i := range k {
				k[i] = byte(rng.IntN(256))
			}
			w, ok := want[string(k)]
			if got, found := tr.Find(k); found != ok || ok && got != w {
				t.Fatalf("Find(%q) = %d, %v; want %d, %v", k, got, found, w, ok)
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	tr, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for c := range 256 {
		if _, ok := tr.Find([]byte{byte(c)}); ok {
			t.Fatalf("found %d", c)
		}
	}
}

// Many nodes with the same sixteen children must share blocks: an array of many times the nodes was
// more than a tokenizer may take.
func TestDense(t *testing.T) {
	var keys [][]byte
	var values []uint32
	for i := range 200_000 {
		keys, values = append(keys, fmt.Appendf(nil, "▁w%x", i)), append(values, uint32(i))
	}
	trie, err := New(keys, values)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trie.units); n > 3*len(keys) {
		t.Errorf("%d units for %d keys", n, len(keys))
	}
	for i, k := range keys {
		if v, ok := trie.Find(k); !ok || v != values[i] {
			t.Fatalf("%q: %d, %v", k, v, ok)
		}
	}
}

// longKeys returns keys of few different bytes, as the pieces of a language with a script of its own have: the bases of most
// free units are used.
func longKeys(n int) (keys [][]byte) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range n {
		var k []byte
		for range 3 + rng.IntN(4) {
			k = utf8.AppendRune(k, rune(0x1000+int(60*rng.Float64()*rng.Float64())))
		}
		keys = append(keys, k)
	}
	return keys
}

// TestLong checks that nodes with one child, which are most of such a trie, leave no holes.
func TestLong(t *testing.T) {
	keys := longKeys(effort.Of(3000, 20_000, 64_000))
	nodes := map[string]bool{}
	values := make([]uint32, len(keys))
	for i, k := range keys {
		for end := range k {
			nodes[string(k[:end+1])] = true
		}
		values[i] = uint32(len(k))
	}
	trie, err := New(keys, values)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trie.units); n > len(nodes)+len(nodes)/16+4*blockUnits {
		t.Errorf("%d units for %d nodes", n, len(nodes))
	}
	for i, k := range keys {
		if v, ok := trie.Find(k); !ok || v != values[i] {
			t.Fatalf("%q: %d, %v", k, v, ok)
		}
	}
}

func BenchmarkLong(b *testing.B) {
	keys := longKeys(64_000)
	values := make([]uint32, len(keys))
	for b.Loop() {
		if _, err := New(keys, values); err != nil {
			b.Fatal(err)
		}
	}
}

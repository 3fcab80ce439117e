//go:build !purego

package filter

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

// checkWide compares the sketch of a prompt and a target with that of the plain twins.
func checkWide(t *testing.T, prompt, target []byte) {
	t.Helper()
	if !hasWide {
		t.Skip("no kernels for this processor")
	}
	got := NewSketcher(Near).Append(nil, prompt, target)
	hasWide = false
	defer func() { hasWide = true }()
	if want := NewSketcher(Near).Append(nil, prompt, target); !bytes.Equal(got, want) {
		t.Fatalf("%q and %q: %x, want %x", prompt, target, got, want)
	}
}

func TestWide(t *testing.T) {
	effort.OneGoroutine(t)
	if !hasWide {
		t.Skip("no kernels for this processor")
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	parts := []string{"é", "Ünder", "́", "中文", "\xff", "\x80", "\x00", "'", "\n", "ß9", "ǅ", " ", "@",
		"[", "`", "{", "/", ":"}
	for round := range 20_000 {
		var text []byte
		rare, long := 1+rnd.IntN(60), 1+rnd.IntN(1+round%90)
		for n := rnd.IntN(400); len(text) < n; {
			for range rnd.IntN(1 + long) {
				text = append(text, "abcxyzABCXYZ0189"[rnd.IntN(16)])
			}
			if rnd.IntN(rare) == 0 {
				text = append(text, parts[rnd.IntN(len(parts))]...)
			} else {
				text = append(text, ' ')
			}
		}
		cut := rnd.IntN(len(text) + 1)
		checkWide(t, text, nil)
		checkWide(t, text[:cut:cut], text[cut:])
	}
	var text [windowBytes]byte
	for c := range 256 {
		for i := range text {
			text[i] = byte(c + 37*i)
		}
		word, high := classify(&text)
		if wantWord, wantHigh := classifyGo(&text); word != wantWord || high != wantHigh {
			t.Fatalf("%q: %x, %x, want %x, %x", text, word, high, wantWord, wantHigh)
		}
	}
}

func FuzzWide(f *testing.F) {
	f.Add([]byte("Some words, of which one is supercalifragilisticexpialidocious, and one a café; more than 64 bytes"),
		[]byte("a target"))
	f.Add(bytes.Repeat([]byte("w0rd "), 70), []byte(nil))
	f.Fuzz(checkWide)
}

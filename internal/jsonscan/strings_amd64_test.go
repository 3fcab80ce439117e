//go:build !purego

package jsonscan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// readings returns what a Scanner, Unescape and Plain make of the inside of a string and what follows it.
func readings(text []byte) string {
	var s Scanner
	s.Reset(append(append(make([]byte, 0, 1+len(text)), '"'), text...))
	span, err := s.String()
	var inside []byte
	lone := 0
	if err == nil {
		inside, lone = Unescape([]byte("before"), s.Raw(span))
	}
	return fmt.Sprintf("%v, %v, at %d; %q, %d; %d", span, err, s.Offset(), inside, lone, Plain(text))
}

// checkWide compares the kernels with their plain twins.
func checkWide(t *testing.T, text []byte) {
	t.Helper()
	if !hasWide {
		t.Skip("no kernels for this processor")
	}
	got := readings(text)
	hasWide = false
	defer func() { hasWide = true }()
	if want := readings(text); got != want {
		t.Fatalf("%q: %s, want %s", text, got, want)
	}
}

func TestWide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	parts := []string{`"`, `\\`, `\"`, `\n`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\x`, `\`, "\x1f", "\x80", "é", " "}
	for range 100_000 {
		var text []byte
		rare := 1 + rnd.IntN(40)
		for n := rnd.IntN(200); len(text) < n; {
			if rnd.IntN(rare) == 0 {
				text = append(text, parts[rnd.IntN(len(parts)-1*rnd.IntN(2)*5)]...)
			} else {
				text = append(text, 'a'+byte(rnd.IntN(26)))
			}
		}
		if rnd.IntN(4) > 0 {
			text = append(text, `", "after": "and more than thirty-two bytes"`...)
		}
		checkWide(t, text)
	}
	for i := range 130 { // each kind of end, escape or byte at each place of the vectors
		for _, part := range parts {
			text := append(bytes.Repeat([]byte{'a'}, i), part...)
			checkWide(t, text)
			checkWide(t, append(text, `" and what follows the string, which has ninety bytes: `+
				`in the end a vector must not look at them.`...))
		}
	}
}

func FuzzWide(f *testing.F) {
	f.Add([]byte(`thirty-two bytes and then \" \\ \n \u00e9 \ud83d\ude00 and \ud83d alone, up to the end"`))
	f.Add([]byte(`a backslash is the last byte of thirty-two\`))
	f.Fuzz(checkWide)
}

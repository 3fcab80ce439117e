package jsonscan

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// plain is as its description, byte by byte, wherever the first other byte is and whatever is around it.
func TestPlain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	near := []byte{0, 1, 0x1f, ' ', '!', '"', '#', '[', '\\', ']', 0x7f, 0x80, 0x9f, 0xa0, 0xa2, 0xdc, 0xff}
	text := make([]byte, 40)
	for range 200_000 {
		text = text[:rnd.IntN(41)]
		for i := range text {
			switch rnd.IntN(12) {
			case 0:
				text[i] = near[rnd.IntN(len(near))]
			case 1:
				text[i] = byte(rnd.Uint32())
			default:
				text[i] = 'a' + byte(rnd.IntN(26))
			}
		}
		want := slices.IndexFunc(text, isOther)
		if want < 0 {
			want = len(text)
		}
		if got := Plain(text); got != want {
			t.Fatalf("%q: %d, want %d", text, got, want)
		}
	}
	for c := range 256 { // each byte at each place of eight
		for i := range 9 {
			text := bytes.Repeat([]byte{'a'}, 9)
			text[i] = byte(c)
			if got := Plain(text); (got < 9) != isOther(byte(c)) || got < 9 && got != i {
				t.Errorf("%q: %d", text, got)
			}
		}
	}
}

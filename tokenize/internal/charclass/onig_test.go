package charclass

import (
	"encoding/binary"
	"testing"
	"unicode"
)

func TestOnigClasses(t *testing.T) {
	index := AppendOnig(nil)
	pages := index[2*(unicode.MaxRune+1)>>7:]
	class := func(c rune) uint8 { return pages[int(binary.LittleEndian.Uint16(index[c>>7*2:]))<<7|int(c&127)] }
	var count [6]int
	for c := rune(0); c <= 0x10ffff; c++ {
		k := class(c)
		for b := range count {
			count[b] += int(k >> b & 1)
		}
	}
	// Counted by matching each class against every scalar value with the engine itself.
	want := [6]int{141028, 1911, 25, 2501, 0, 0}
	for b := range 4 {
		if count[b] != want[b] {
			t.Errorf("class bit %d has %d code points, want %d", b, count[b], want[b])
		}
	}
	for _, c := range []struct {
		r rune
		k uint8
	}{
		{'a', ClassLetter | ClassLower}, {'Z', ClassLetter | ClassUpper}, {'7', ClassNumber}, {' ', ClassSpace},
		{'\n', ClassSpace},
		{'\'', 0}, {0x85, ClassSpace}, {0xa0, ClassSpace}, {0x200b, 0}, {0x180e, 0}, {0x301, ClassMark},
		{'ǅ', ClassLetter | ClassUpper},
		{'中', ClassLetter}, {'ʰ', ClassLetter}, {0x10ffff, 0}, {0xd800, 0},
	} {
		if got := class(c.r); got != c.k {
			t.Errorf("class of %U is %#x, want %#x", c.r, got, c.k)
		}
	}
}

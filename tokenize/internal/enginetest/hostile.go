package enginetest

import (
	"bytes"
	"math/rand/v2"
	"unicode/utf8"
)

// HostileText is a text with its name.
type HostileText struct {
	Name string
	Text []byte
}

// repeatedTexts are names and what is repeated.
var repeatedTexts = [][2]string{
	{"plain", "the quick brown fox jumps over the lazy dog "}, {"a", "a"}, {"spaces", " "}, {"digits", "1"},
	{"less", "<"}, {"dash", "-"}, {"newlines", "\n"},
	{"nul", "\x00"}, {"a-", "a-"}, {"1.", "1."}, {"ab", "ab"}, {"aB", "aB"}, {"quote-s", "'s"},
	{"newline-space", "\n "}, {"nul-a", "a\x00"}, {"ff", "\xff"},
	{"acute", "\u0301"}, {"e-acute", "e\u0301"}, {"space-acute", " \u0301"}, {"family", "\U0001F468\u200D"},
	{"flag", "\U0001F1E9"},
	{"metaspace", "\u2581"}, {"nbsp", "\u00A0"}, {"prepend", "\u0600"}, {"han", "\u4E2D"}, {"hangul", "\uAC01"},
	{"a-han-A", "a\u4E2DA"},
}

// HostileTexts returns texts of about n bytes: repetitions, for which loops may take quadratic
// time, and random text, which no cache holds and in which few neighbours form a token.
func HostileTexts(n int) []HostileText {
	var texts []HostileText
	for _, r := range repeatedTexts {
		texts = append(texts, HostileText{r[0], bytes.Repeat([]byte(r[1]), n/len(r[1]))})
	}
	rng := rand.New(rand.NewPCG(10, 10))
	random := func(name string, char func() rune) {
		text := make([]byte, 0, n+utf8.UTFMax)
		for len(text) < n {
			text = utf8.AppendRune(text, char())
		}
		texts = append(texts, HostileText{name, text})
	}
	among := func(name, chars string) {
		list := []rune(chars)
		random(name, func() rune { return list[rng.IntN(len(list))] })
	}
	between := func(name string, low, high rune) {
		random(name, func() rune { return low + rng.Int32N(high-low+1) })
	}
	const lower, upper, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	among("letters", lower)
	among("cases", lower+upper)
	among("base64", lower+upper+digits+"+/")
	among("hex", digits+"abcdef")
	among("random-digits", digits)
	among("punctuation", "!\"#$%&()*+,-./:;<=>?@[]^_`{|}~")
	between("ascii", 0, 0x7F)
	among("abc", "abc")
	between("latin", 0xC0, 0x24F)
	between("cyrillic", 0x400, 0x4FF)
	between("random-han", 0x4E00, 0x9FFF)
	between("random-hangul", 0xAC00, 0xD7A3)
	between("marks", 0x300, 0x36F)
	between("pictures", 0x1F300, 0x1F9FF)
	random("runes", func() rune {
		for {
			if r := rng.Int32N(utf8.MaxRune + 1); utf8.ValidRune(r) {
				return r
			}
		}
	})
	k := 0
	random("words", func() rune {
		if k++; k%10 == 0 {
			return ' '
		}
		return 'a' + rng.Int32N(26)
	})
	noise := make([]byte, n)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	return append(texts, HostileText{"bytes", noise},
		HostileText{"replaced", bytes.ToValidUTF8(noise, []byte("\uFFFD"))})
}

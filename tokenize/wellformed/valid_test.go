package wellformed

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/effort"
)

// What Python gives for bytes.decode("utf-8", "replace"), with ? for U+FFFD.
func TestAppend(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"plain é 😀":                            "plain é 😀",
		"\xff":                                 "?",
		"\xff\xfe":                             "??",
		"a\x80b":                               "a?b",
		"\xc0\xaf":                             "??",
		"\xc2":                                 "?",
		"\xc2a":                                "?a",
		"\xe2\x82":                             "?",
		"\xe2\x82a":                            "?a",
		"\xe2\x82\xac":                         "€",
		"\xe0\x80\xaf":                         "???",
		"\xe0\xa0":                             "?",
		"\xed\xa0\x80":                         "???",
		"\xed\x9f":                             "?",
		"\xf0\x90\x80":                         "?",
		"\xf0\x80\x80\x80":                     "????",
		"\xf4\x90\x80\x80":                     "????",
		"\xf4\x8f\xbf\xbf":                     "\U0010ffff",
		"\xf5\x80\x80\x80":                     "????",
		"\xf0\x9f\x98a\xf0\x9f\x98\x80\xe2":    "?a😀?",
		"\uFFFD\xff":                           "\uFFFD?",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41": "????A",
	} {
		got, replaced := Append([]byte("kept"), []byte(text))
		want = strings.ReplaceAll(want, "?", "\uFFFD")
		if string(got) != "kept"+want || replaced != strings.Count(want, "\uFFFD")-strings.Count(text, "\uFFFD") {
			t.Errorf("%q: %q with %d replaced, want %q", text, got, replaced, want)
		}
	}
}

// checkValid compares Valid with the standard library.
func checkValid(t *testing.T, text []byte) {
	t.Helper()
	if got, want := Valid(text), utf8.Valid(text); got != want {
		t.Fatalf("%q: %v, want %v", text, got, want)
	}
}

func TestValid(t *testing.T) {
	// The first and last byte of each range that the definition of UTF-8 tells apart.
	edges := []byte{0, 'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
		0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff}
	text := []byte(strings.Repeat("a", 96))
	places := []int{30, 61, 92, 0, 13, 14, 29, 31, 62, 63} // halves, ends and the rest of the vectors
	for _, at := range places[:effort.Of(3, len(places), len(places))] {
		for _, a := range edges {
			for _, b := range edges {
				for _, c := range edges {
					for _, d := range edges {
						copy(text[at:], []byte{a, b, c, d})
						checkValid(t, text)
						checkValid(t, text[:at+4])
					}
				}
			}
		}
		copy(text[at:], "aaaa")
	}
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "plain text", "é", "߿", "ࠀ", "€", "\ud7ff", "\ue000", "😀", "\U0010ffff"}
	for range effort.Of(50_000, 200_000, 200_000) {
		text = text[:0]
		for n := random.IntN(200); len(text) < n; {
			text = append(text, parts[random.IntN(len(parts))]...)
		}
		checkValid(t, text)
		if len(text) > 0 {
			text[random.IntN(len(text))] = edges[random.IntN(len(edges))]
			checkValid(t, text)
		}
	}
}

func FuzzValid(f *testing.F) {
	f.Add([]byte("a text of more than thirty-two bytes, élan 中文 😀"))
	f.Add([]byte("surrogates and others that are ill-formed: \xed\xa0\x80 \xf4\x90\x80\x80"))
	f.Fuzz(checkValid)
}

func BenchmarkValid(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": strings.Repeat("A plain sentence of prose. ", 20),
		"mixed": strings.Repeat("A café in Zürich — “plain”. ", 20),
		"cjk":   strings.Repeat("统一码是一种字符编码标准。", 14),
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if !Valid(data) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

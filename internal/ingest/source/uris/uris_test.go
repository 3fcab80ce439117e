package uris

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The name of a file, of whatever bytes, is found again by its URI, which is text; two names never have one URI.
func TestPathOfURI(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "/", "é", "\xff", "\xe2\x82", `\`, "x", "5", "c", "80", "ff", `\x5c`, `\xff`, "\ufffd", "%ff"})
	rapid.Check(t, func(t *rapid.T) {
		name := ""
		for _, w := range rapid.SliceOf(word).Draw(t, "words") {
			name += w
		}
		got := OfFile(name)
		if back := Path(got); !utf8.ValidString(got) || back != name {
			t.Fatalf("%q: %q: %q", name, got, back)
		}
	})
	for _, name := range []string{"a.txt", `a\b.txt`, `C:\x.txt`, "données/é.txt", `\x7f`} {
		if got := OfFile(name); got != name {
			t.Errorf("%q has the URI %q", name, got)
		}
	}
}

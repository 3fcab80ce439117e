package normalize

import (
	"strings"
	"testing"
)

// What Python gives for bytes.decode("utf-8", "replace"), with ? for U+FFFD.
func TestAppendValid(t *testing.T) {
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
		got, replaced := AppendValid([]byte("kept"), []byte(text))
		want = strings.ReplaceAll(want, "?", "\uFFFD")
		if string(got) != "kept"+want || replaced != strings.Count(want, "\uFFFD")-strings.Count(text, "\uFFFD") {
			t.Errorf("%q: %q with %d replaced, want %q", text, got, replaced, want)
		}
	}
}

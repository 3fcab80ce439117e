package visible

import "testing"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"plain, ünïcode, 中文":      "plain, ünïcode, 中文",
		"a\x1b[31mb\x00":          "a␛[31mb␀",
		"a\tb\nc\r":               "a⇥b⏎\nc␍",
		"\x7f\u0085":              "␡⟨U+0085⟩",
		"abc\u202efdp.exe":        "abc⟨U+202E⟩fdp.exe",
		"\u200f\u061c\u2066x":     "⟨U+200F⟩⟨U+061C⟩⟨U+2066⟩x",
		"a\u2028b\ufeff":          "a⟨U+2028⟩b⟨U+FEFF⟩",
		"نمی\u200cخواهم 👩\u200d🚀": "نمی\u200cخواهم 👩\u200d🚀",
		"\xff":                    "\ufffd",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Package visible makes text of others harmless where people read it: names of files, fields and
// tokens, and the text of a corpus.
package visible

import (
	"fmt"
	"strings"
	"unicode"
)

// Acts reports whether r affects how the text around it is shown: a control character, one that
// changes the direction, a line separator, or a byte order mark. Characters that only affect how
// letters join (U+200C, U+200D) do not act: texts need them. All that act are below U+10000.
func Acts(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == 0xfeff
}

// Text returns text for a page: control characters as pictures, the others that act by number, bytes
// that are not UTF-8 as U+FFFD.
func Text(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString("⏎\n")
		case r == '\t':
			b.WriteString("⇥")
		case r < ' ':
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		case Acts(r):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

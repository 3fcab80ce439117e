package enginetest

import (
	"math/rand/v2"
	"strings"
)

// Text returns a random text of words over alphabet, repetitions, marks, spaces and whatever else
// engines may get wrong.
func Text(rng *rand.Rand, alphabet []string) string {
	var sb strings.Builder
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	for range rng.IntN(12) {
		switch rng.IntN(10) {
		case 0:
			sb.WriteString(strings.Repeat(pick(alphabet), 1<<rng.IntN(10)))
		case 1:
			sb.WriteString(pick(awkward))
		case 2:
			sb.WriteRune(rune(1 + rng.IntN(0x3000)))
		case 3:
			s := pick(alphabet) + pick(alphabet) + pick(alphabet)
			sb.WriteString(strings.Repeat(s, 1+rng.IntN(40)))
		default:
			for range 1 + rng.IntN(9) {
				sb.WriteString(pick(alphabet))
			}
		}
		if rng.IntN(3) > 0 {
			sb.WriteString(pick(spaces))
		}
	}
	return sb.String()
}

var (
	spaces = []string{" ", " ", " ", " ", "  ", "\n", "\t", "\r\n", "\u00A0", "\u3000", "\u2028", "\u0085", "\u2581",
		"   "}
	awkward = []string{"\x00", "\u0301", "\u0340\u0301", "e\u0301", "\U0001F468\u200D\U0001F469", "\u200B", "\u200D",
		"\u0600a", "\u0344", "\u4E2D\u6587",
		"\uAC01", "\uFF21", "\uFB01\u0301", "\uFFFD", "\U0001D15E\u0301", "\u0130", "don't", "##", "...", "\x01",
		"\x7F", "'", "\uF900", "\u037E", "\u1AB0\U0001E4EC"}
)

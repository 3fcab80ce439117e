package regex

import "unicode/utf8"

// holds reports whether an assertion is true at pos.
func (m *machine) holds(in *inst, pos int) bool {
	text := m.text
	switch in.assert {
	case assertTextStart:
		return pos == 0
	case assertTextEnd:
		return pos == len(text)
	case assertTextEndOrNewline:
		return pos == len(text) || pos == len(text)-1 && text[pos] == '\n'
	case assertLineStart:
		return pos == 0 || text[pos-1] == '\n' && pos < len(text)
	case assertLineEnd:
		return pos == len(text) || text[pos] == '\n'
	}
	before, after := false, false
	if pos > 0 {
		c, _ := utf8.DecodeLastRune(text[:pos])
		before = m.prog.word.has(c) && (!in.ascii || c < utf8.RuneSelf)
	}
	if pos < len(text) {
		c, _ := decode(text, pos)
		after = m.prog.word.has(c) && (!in.ascii || c < utf8.RuneSelf)
	}
	return (before != after) == (in.assert == assertWord)
}

// decode returns the character at pos; a byte that is not part of a well-formed character counts as
// U+FFFD.
func decode(text []byte, pos int) (rune, int) {
	if c := text[pos]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRune(text[pos:])
}

package charclass

import "unicode/utf8"

// Nmt returns what Hugging Face's Nmt normalizer, SentencePiece's clean-up for translation, makes
// of a character: -1 if it is removed. It removes control characters and turns unusual spaces into
// spaces.
func Nmt(r rune) rune {
	switch {
	case r >= 0x20 && r < 0x7F:
		return r
	case r >= 1 && r <= 8, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return -1
	case r == 9, r == 0x0A, r == 0x0C, r == 0x0D, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return ' '
	}
	return r
}

// AppendNmt appends what Nmt makes of a character.
func AppendNmt(dst []byte, r rune) []byte {
	if r = Nmt(r); r < 0 {
		return dst
	}
	return utf8.AppendRune(dst, r)
}

// AppendNmtText appends what Nmt makes of a text.
func AppendNmtText(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		dst = AppendNmt(dst, r)
		text = text[n:]
	}
	return dst
}

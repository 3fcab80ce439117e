package charclass

import "unicode/utf8"

// byteChars maps each byte to its printable character in GPT-2's byte-level alphabet; charBytes is
// the inverse.
var byteChars, charBytes = func() (to [256]string, from [0x144]int16) {
	for i := range from {
		from[i] = -1
	}
	next := rune(256)
	for b := range rune(256) {
		r := b
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		to[b] = string(r)
		from[r] = int16(b)
	}
	return to, from
}()

// ByteChar returns the character for a byte in the byte-level alphabet, as UTF-8.
func ByteChar(b byte) string { return byteChars[b] }

// AppendBytes appends the bytes that a byte-level token stands for; ok is false if a character is
// not in the alphabet.
func AppendBytes(dst, token []byte) (_ []byte, ok bool) {
	from := len(dst)
	for i := 0; i < len(token); {
		if b := charBytes[token[i]]; b >= 0 && token[i] < utf8.RuneSelf { // these stand for themselves
			dst = append(dst, token[i])
			i++
			continue
		}
		r, n := utf8.DecodeRune(token[i:])
		if r >= rune(len(charBytes)) || charBytes[r] < 0 {
			return dst[:from], false
		}
		dst = append(dst, byte(charBytes[r]))
		i += n
	}
	return dst, true
}

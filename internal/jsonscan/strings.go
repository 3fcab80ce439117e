package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes holds the characters that stand for others after a backslash.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Plain returns how many bytes text begins with that stand for themselves in a string: neither quotes nor
// backslashes nor control characters.
func Plain(text []byte) int {
	if len(text) < wideBytes || !hasWide {
		return plainNarrow(text)
	}
	n, _ := scanWide(text, &noEscapes)
	return n + plainNarrow(text[n:])
}

// wideBytes is the least text for scanWide and unescapeWide.
const wideBytes = 32

var noEscapes [256]byte

// plainNarrow is Plain, eight bytes at once.
func plainNarrow(text []byte) int {
	n := len(text)
	for ; len(text) >= 8; text = text[8:] {
		if other := othersOf(binary.LittleEndian.Uint64(text)); other != 0 {
			return n - len(text) + bits.TrailingZeros64(other)/8
		}
	}
	for i, c := range text {
		if isOther(c) {
			return n - len(text) + i
		}
	}
	return n
}

// othersOf returns the high bits of bytes that do not stand for themselves, among them the lowest such byte's
// and none of a lower byte.
func othersOf(x uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	// A byte below 0x80 borrows for its high bit where it is less than what is subtracted from it: a quote
	// or a backslash is 0 after xor, less than 1. The lowest such byte got no borrow itself.
	other := ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones) | (x - ' '*ones)
	return other & ^x & highs
}

func isOther(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// escapeLen returns the length of the escape that data begins with, 0 if there is none.
func escapeLen(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	if escapes[data[1]] != 0 {
		return 2
	}
	if data[1] == 'u' {
		if _, size := decodeHex(data); size == 6 {
			return 6
		}
	}
	return 0
}

// Unescape appends the text of the inside of a string that a Scanner accepted. lone is the number of
// halves of surrogate pairs that became U+FFFD.
func Unescape(dst, raw []byte) (text []byte, lone int) {
	for {
		if len(raw) >= wideBytes && hasWide && (raw[0] != '\\' || raw[1] != 'u') {
			var read int
			dst, read = unescapeWide(dst, raw)
			raw = raw[read:]
		}
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...), lone
		}
		dst = append(dst, raw[:n]...)
		r, size := decodeEscape(raw[n:])
		if size == 0 {
			size = 6 // the first half of a pair ends the string
		}
		if utf16.IsSurrogate(r) {
			lone++
		}
		dst = utf8.AppendRune(dst, r)
		raw = raw[n+size:]
	}
}

// A StringEnd is why Decode stopped.
type StringEnd int

const (
	Open   StringEnd = iota // data or maxText ended first
	Closed                  // the next byte is the closing quote
	Bad                     // the next byte cannot be part of a string
)

// Decode appends the text of a string, whose inside data begins with, to dst: at most until maxText
// bytes are appended, and never half of a character or of an escape. raw is how much of data it
// took. Half of a surrogate pair becomes U+FFFD; ill-formed UTF-8 stays as it is.
func Decode(dst, data []byte, maxText int) (text []byte, raw int, end StringEnd) {
	limit := len(dst) + maxText
	for raw < len(data) && len(dst) < limit {
		switch b := data[raw]; {
		case b == '"':
			return dst, raw, Closed
		case b < ' ':
			return dst, raw, Bad
		case b != '\\':
			run := data[raw:]
			run = run[:min(len(run), limit-len(dst))]
			run = run[:Plain(run)]
			dst = append(dst, run...)
			raw += len(run)
		default:
			r, size := decodeEscape(data[raw:])
			if size <= 0 {
				if size < 0 {
					return dst, raw, Bad
				}
				return dst, raw, Open
			}
			dst = utf8.AppendRune(dst, r)
			raw += size
		}
	}
	if raw < len(data) && data[raw] == '"' {
		return dst, raw, Closed
	}
	return dst, raw, Open
}

// decodeEscape decodes the escape at the beginning of data. size is 0 if it continues after data,
// -1 if it is not an escape. Half of a surrogate pair is r itself.
func decodeEscape(data []byte) (r rune, size int) {
	if len(data) < 2 {
		return 0, 0
	}
	if c := escapes[data[1]]; c != 0 {
		return rune(c), 2
	}
	if data[1] != 'u' {
		return 0, -1
	}
	high, size := decodeHex(data)
	if size != 6 || high < 0xd800 || high >= 0xdc00 {
		return high, size
	}
	rest := data[6:]
	if len(rest) > 0 && rest[0] != '\\' || len(rest) > 1 && rest[1] != 'u' {
		return high, 6
	}
	if len(rest) < 6 {
		return high, 0 // the other half may follow
	}
	low, size := decodeHex(rest)
	if size != 6 || low < 0xdc00 || low > 0xdfff {
		return high, 6
	}
	return utf16.DecodeRune(high, low), 12
}

// decodeHex decodes \uXXXX, with sizes as decodeEscape has them.
func decodeHex(data []byte) (r rune, size int) {
	for i := 2; i < 6; i++ {
		if i >= len(data) {
			return 0, 0
		}
		d := data[i]
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, -1
		}
		r = r<<4 | rune(d)
	}
	return r, 6
}

// AppendString appends a JSON string. Bytes that are not UTF-8 stay as they are.
func AppendString(dst, s []byte) []byte {
	return append(AppendEscaped(append(dst, '"'), s), '"')
}

// AppendEscaped appends what stands between the quotes of a JSON string. Parts of a text may be appended one
// after another.
func AppendEscaped(dst, s []byte) []byte {
	const hexDigits = "0123456789abcdef"
	from := 0
	dst = slices.Grow(dst, len(s)) // a long text at once: the steps of append would leave several times its length
	for i, b := range s {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
		}
	}
	return append(dst, s[from:]...)
}

package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Two texts that are compared differ where one header or end of a turn differs from another, which
// is often within a token: <|end|> and <|endoftext|> have nine bytes in common. What they share ends
// at a border of both, which is not within a tag or a word.

// maxTagBytes is the length of the longest tag, such as <|im_start|> or [/INST].
const maxTagBytes = 64

func opens(b byte) bool  { return b == '<' || b == '[' }
func closes(b byte) bool { return b == '>' || b == ']' }

// inTag returns where the tag begins whose beginning ends s, -1 if there is none.
func inTag(s string) int {
	for n := len(s) - 1; n >= max(0, len(s)-maxTagBytes); n-- {
		switch {
		case opens(s[n]):
			return n
		case closes(s[n]), s[n] == ' ', s[n] == '\n':
			return -1
		}
	}
	return -1
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// commonStart returns how many bytes two texts have in common at their beginnings, up to a border.
// If b begins with all of a, that is all of a.
func commonStart(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) {
		return n
	}
	for n > 0 && !utf8.RuneStart(a[n]) {
		n--
	}
	if tag := inTag(a[:n]); tag >= 0 {
		return tag
	}
	left, _ := utf8.DecodeLastRuneInString(a[:n])
	next, _ := utf8.DecodeRuneInString(a[n:])
	other, _ := utf8.DecodeRuneInString(b[n:])
	if isWord(next) || isWord(other) && n < len(b) {
		for n > 0 && isWord(left) {
			n -= utf8.RuneLen(left)
			left, _ = utf8.DecodeLastRuneInString(a[:n])
		}
	}
	return n
}

// commonEnd returns how many bytes two texts have in common at their ends, up to a border.
func commonEnd[T string | []byte](a, b T) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	if n == len(a) {
		return n
	}
	shared := a[len(a)-n:]
	for len(shared) > 0 && !utf8.RuneStart(shared[0]) {
		shared = shared[1:]
	}
	for k := range min(len(shared), maxTagBytes) {
		if opens(shared[k]) || shared[k] == ' ' || shared[k] == '\n' {
			break
		}
		if closes(shared[k]) {
			shared = shared[k+1:]
			break
		}
	}
	return len(shared)
}

// beforeHeader returns how much of what two texts have in common is before a header that begins in
// it with a tag, such as <|start_header_id|>, and continues with different words.
func beforeHeader(a, b string, n int) int {
	if n == 0 || n == len(a) || n == len(b) || !closes(a[n-1]) {
		return n
	}
	next, _ := utf8.DecodeRuneInString(a[n:])
	other, _ := utf8.DecodeRuneInString(b[n:])
	if tag := inTag(a[:n-1]); tag >= 0 && isWord(next) && isWord(other) {
		return tag
	}
	return n
}

// firstTag returns the tag with which a text begins, such as <|end|>, "" if there is none.
func firstTag(s string) string {
	if s == "" || !opens(s[0]) {
		return ""
	}
	if n := strings.IndexFunc(s[:min(len(s), maxTagBytes)], func(r rune) bool { return r == '>' || r == ']' }); n > 0 &&
		!strings.ContainsAny(s[:n], " \n") {
		return s[:n+1]
	}
	return ""
}

// parts returns the parts of a text up to a border that begin where it does, the longest first. None is but white
// space.
func parts(s string) (list []string) {
	for n := len(s); n > 0 && strings.TrimSpace(s[:n]) != ""; n-- {
		if n == len(s) || inTag(s[:n]) < 0 && !(isWord(rune(s[n-1])) && isWord(rune(s[n]))) {
			list = append(list, s[:n])
		}
	}
	return list
}

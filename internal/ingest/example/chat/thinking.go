package chat

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// Where a message has no reasoning, some templates write an empty block for it between the header and the answer,
// such as <think>\n\n</think>\n\n, or only what ends it. The model is not to learn that: in the prompt the same
// block says that there is to be no reasoning.

// afterEmpty returns where turn i begins that begins at start, without an empty block that the template wrote there
// by itself. The block ends at or before limit.
func (j *rendering) afterEmpty(text []byte, i, start, limit int) int {
	n := emptyBlock(text[start:limit])
	if n == 0 || says(j.messages[i], strings.TrimSpace(string(text[start:start+n]))) {
		return start
	}
	return start + n
}

// emptyBlock returns how many bytes a text begins with that are a block without words, or the end of one, and white
// space around it.
func emptyBlock(text []byte) int {
	blank := func(from int) int { return len(text) - len(bytes.TrimLeft(text[from:], " \t\r\n")) }
	at := blank(0)
	tag := firstTag(string(text[at:min(len(text), at+maxTagBytes)]))
	if tag == "" {
		return 0
	}
	at += len(tag)
	if tag[1] == '/' {
		return blank(at)
	}
	name := at
	for name < len(text) && isWord(rune(text[name])) {
		name++
	}
	if name < len(text) && text[name] == '\n' { // it is a channel's
		at = name
	}
	at = blank(at)
	end := firstTag(string(text[at:min(len(text), at+maxTagBytes)]))
	if end == "" || end == tag {
		return 0
	}
	if name := tagName(tag); name == "" || tagName(end) != name {
		return 0
	}
	return blank(at + len(end))
}

// sides tell a tag from that at the other end, besides signs, as in <|START_THINKING|>.
var sides = []string{"start", "begin", "open", "prefix", "end", "close", "stop", "suffix"}

// tagName returns the letters and digits of a tag that the one at the other end has too.
func tagName(tag string) string {
	var name []byte
next:
	for at := 0; at < len(tag); {
		if strings.IndexByte("sbopec", tag[at]|' ') >= 0 { // one may begin here
			for _, side := range sides {
				if end := at + len(side); end <= len(tag) && strings.EqualFold(tag[at:end], side) {
					at = end
					continue next
				}
			}
		}
		r, size := utf8.DecodeRuneInString(tag[at:])
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			name = append(name, tag[at:at+size]...)
		}
		at += size
	}
	return string(name)
}

// says reports whether a string in a message, at any depth, holds a text.
func says(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case *jinja.List:
		for _, item := range v.Items {
			if says(item, text) {
				return true
			}
		}
	case *jinja.Dict:
		for k := range v.Len() {
			if _, value, ok := v.At(k); ok && says(value, text) {
				return true
			}
		}
	}
	return false
}

package normalize

import (
	"bytes"
	"unicode/utf8"
)

// Finder finds the leftmost match at or after a position; start is -1 where there is none.
type Finder interface {
	FindAt(text []byte, at int) (start, end int)
}

// Literal is a Finder of a fixed string.
type Literal []byte

// FindAt implements Finder.
func (l Literal) FindAt(text []byte, at int) (start, end int) {
	i := bytes.Index(text[at:], l)
	if i < 0 {
		return -1, -1
	}
	return at + i, at + i + len(l)
}

// Matches calls f for each match, left to right, as Hugging Face walks over a text: matches do not overlap, and an empty
// match directly after another match does not count.
func Matches(find Finder, text []byte, f func(start, end int)) {
	if len(text) == 0 {
		return
	}
	last := -1
	for at := 0; at <= len(text); {
		start, end := find.FindAt(text, at)
		if start < 0 {
			return
		}
		if start == end && end == last {
			if at == len(text) {
				return
			}
			_, n := utf8.DecodeRune(text[at:])
			at += n
			continue
		}
		at, last = end, end
		f(start, end)
	}
}

type replace struct {
	find    Finder
	content []byte
}

// Replace puts content where find matches. Groups are not expanded.
func Replace(find Finder, content string) Step { return replace{find, []byte(content)} }

func (r replace) Append(dst, src []byte, e *Edges) []byte {
	zero, done := e.Zero, 0
	e.Zero = 0
	keep := func(to int) {
		dst = append(dst, src[done:to]...)
		e.Zero += max(0, min(to, zero)-done)
		done = to
	}
	Matches(r.find, src, func(start, end int) {
		keep(start)
		dst = append(dst, r.content...)
		if zero > 0 && end <= zero { // content stems from the last byte of the match
			e.Zero += len(r.content)
		}
		done = end
	})
	keep(len(src))
	return dst
}

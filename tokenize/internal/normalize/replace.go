package normalize

import (
	"bytes"
	"sync"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/regex"
)

// Search finds matches in one text from left to right; it may keep state between calls. FindAt
// returns the leftmost match at or after a position; start is -1 if there is none.
type Search interface {
	FindAt(at int) (start, end int)
	Close()
}

// Pattern is what a Replace or a Split looks for: a string or a regular expression.
type Pattern struct {
	Text       string
	IsRegex    bool
	Expression *regex.Regex // compiled; nil for a string, and until it is searched for
	literal    []byte
}

// String returns the Pattern of a fixed string.
func String(text string) Pattern { return Pattern{Text: text, literal: []byte(text)} }

// Expression returns the Pattern of a regular expression.
func Expression(re *regex.Regex) Pattern {
	return Pattern{Text: re.String(), IsRegex: true, Expression: re}
}

// Uncompiled returns the Pattern of a regular expression that only engines that know its text can
// use. It cannot be searched for.
func Uncompiled(text string) Pattern { return Pattern{Text: text, IsRegex: true} }

// Search starts a search in text.
func (p Pattern) Search(text []byte) Search {
	if p.IsRegex {
		return p.Expression.Search(text)
	}
	s := literalSearches.Get().(*literalSearch)
	s.literal, s.text = p.literal, text
	return s
}

type literalSearch struct{ literal, text []byte }

var literalSearches = sync.Pool{New: func() any { return new(literalSearch) }}

func (s *literalSearch) FindAt(at int) (start, end int) {
	i := bytes.Index(s.text[at:], s.literal)
	if i < 0 {
		return -1, -1
	}
	return at + i, at + i + len(s.literal)
}

func (s *literalSearch) Close() {
	*s = literalSearch{}
	literalSearches.Put(s)
}

// Matches calls f for each match from left to right, as Hugging Face's library finds them: matches
// do not overlap, and an empty match directly after another one does not count.
func Matches[P interface{ Search(text []byte) Search }](find P, text []byte, f func(start, end int)) {
	if len(text) == 0 {
		return
	}
	search := find.Search(text)
	defer search.Close()
	last := -1
	for at := 0; at <= len(text); {
		start, end := search.FindAt(at)
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

// Append implements Step.
func (r Replace) Append(dst, src []byte, e *Edges) []byte {
	from, zero, done := len(dst), e.Zero, 0
	e.Zero = 0
	keep := func(to int) {
		dst = append(dst, src[done:to]...)
		e.Zero += max(0, min(to, zero)-done)
		done = to
	}
	Matches(r.Pattern, src, func(start, end int) {
		if e.over(len(dst) - from + len(r.Content)) {
			e.Over = true
			return
		}
		keep(start)
		dst = append(dst, r.Content...)
		if zero > 0 && end <= zero { // content comes from the last byte of the match
			e.Zero += len(r.Content)
		}
		done = end
	})
	keep(len(src))
	return dst
}

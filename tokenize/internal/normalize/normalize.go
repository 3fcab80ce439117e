// Package normalize implements the normalizers of Hugging Face tokenizers.
//
// A Sequence of steps is applied to one segment: the text between two added tokens. Steps know
// whether the segment's ends are real or cuts in a longer text (Edges), so a text that comes in
// pieces is normalized like the whole, provided that the caller cuts it where no step looks across.
//
// Steps track how many leading bytes of the result come from the first character of the document.
// The Metaspace pre-tokenizer with prepend_scheme "first" needs it.
package normalize

import (
	"bytes"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// Edges describes a segment. Zero is updated by the steps.
type Edges struct {
	First, Last bool // whether this text begins and ends its segment
	Zero        int  // leading bytes that come from the first character of the document

	// Limit, if not 0, bounds the bytes of a step's result approximately: a step that exceeds it
	// may stop, and the sequence does. Over reports that; the result is then empty.
	Limit int
	Over  bool
}

// over reports whether a result of n bytes exceeds the limit.
func (e *Edges) over(n int) bool { return e.Limit > 0 && n > e.Limit }

// Step is one normalizer. It appends the normalized src to dst. src is not empty.
type Step interface {
	Append(dst, src []byte, e *Edges) []byte
}

// Sequence applies steps one after the other. Nil is the identity.
type Sequence []Step

// Scratch is one goroutine's buffers.
type Scratch struct{ a, b []byte }

// maxKept is the size above which a scratch buffer is dropped after use.
const maxKept = 1 << 20

// Apply returns the normalized segment: src itself, or a buffer that is valid until the next call.
func (n Sequence) Apply(s *Scratch, src []byte, e *Edges) []byte {
	if cap(s.a) > maxKept && len(src) < maxKept/8 {
		s.a, s.b = nil, nil
	}
	for _, step := range n {
		if len(src) == 0 {
			break
		}
		s.a = step.Append(s.a[:0], src, e)
		src = s.a
		s.a, s.b = s.b, s.a
		if e.Over || e.over(len(src)) {
			e.Over = true
			s.a, s.b = nil, nil
			return nil
		}
	}
	return src
}

// strideBytes is how much text is normalized between checks of the limit.
const strideBytes = 4096

// chars applies a function to each character.
type chars func(dst []byte, r rune) []byte

// Append implements Step.
func (f chars) Append(dst, src []byte, e *Edges) []byte {
	from, zero, tracked := len(dst), e.Zero, e.Zero > 0
	for i := 0; i < len(src) && !e.over(len(dst)-from); {
		for stop := min(len(src), i+strideBytes); i < stop; {
			r, n := utf8.DecodeRune(src[i:])
			dst = f(dst, r)
			if i += n; tracked && i <= zero {
				e.Zero = len(dst) - from
			}
		}
	}
	return dst
}

func remove(class charclass.Class) Step {
	t := charclass.Classes()
	return chars(func(dst []byte, r rune) []byte {
		if t.Is(r, class) {
			return dst
		}
		return utf8.AppendRune(dst, r)
	})
}

// Steps returns a step for each setting that is on.
func (c Bert) Steps() Sequence {
	t := charclass.Classes()
	var n Sequence
	if c.CleanText {
		n = append(n, chars(func(dst []byte, r rune) []byte {
			switch {
			case t.Is(r, charclass.BertDropped):
				return dst
			case t.Is(r, charclass.BertSpace):
				return append(dst, ' ')
			}
			return utf8.AppendRune(dst, r)
		}))
	}
	if c.HandleChineseChars {
		n = append(n, chars(func(dst []byte, r rune) []byte {
			if t.Is(r, charclass.BertChinese) {
				return append(utf8.AppendRune(append(dst, ' '), r), ' ')
			}
			return utf8.AppendRune(dst, r)
		}))
	}
	if c.StripAccents {
		n = append(n, NFD, remove(charclass.Nonspacing))
	}
	if c.Lowercase {
		n = append(n, chars(charclass.AppendLower))
	}
	return n
}

// Append implements Step.
func (ByteLevel) Append(dst, src []byte, e *Edges) []byte {
	from, zero := len(dst), e.Zero
	for i, c := range src {
		dst = append(dst, charclass.ByteChar(c)...)
		if i < zero {
			e.Zero = len(dst) - from
		}
	}
	return dst
}

// Append implements Step.
func (p Prepend) Append(dst, src []byte, e *Edges) []byte {
	if e.First {
		dst = append(dst, p.Text...)
		if e.Zero > 0 {
			e.Zero += len(p.Text)
		}
	}
	return append(dst, src...)
}

// Append implements Step.
func (s Strip) Append(dst, src []byte, e *Edges) []byte {
	t := charclass.Classes()
	if s.Left && e.First {
		n := len(src)
		src = bytes.TrimLeftFunc(src, func(r rune) bool { return t.Is(r, charclass.Whitespace) })
		e.Zero = max(0, e.Zero-(n-len(src)))
	}
	if s.Right && e.Last {
		src = bytes.TrimRightFunc(src, func(r rune) bool { return t.Is(r, charclass.Whitespace) })
	}
	e.Zero = min(e.Zero, len(src))
	return append(dst, src...)
}

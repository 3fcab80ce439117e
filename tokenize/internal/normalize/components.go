package normalize

import (
	"bytes"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/charsmap"
)

// Component is a normalizer as a file describes it: a Step, or something with Steps.
type Component any

// The normalizers, with the fields of tokenizer.json.
type (
	// Lowercase maps each character to its lower case, without context (no final sigma).
	Lowercase struct{}
	// StripAccents removes combining marks.
	StripAccents struct{}
	// Nmt removes control characters and turns unusual spaces into spaces.
	Nmt struct{}
	// ByteLevel replaces bytes with characters of the byte-level alphabet.
	ByteLevel struct{}
	// Strip removes white space at the ends of a segment.
	Strip struct{ Left, Right bool }
	// Replace replaces each match of Pattern with Content. Groups are not expanded.
	Replace struct {
		Pattern Pattern
		Content string
	}
	// Prepend puts Text before every segment that is not empty.
	Prepend struct{ Text string }
	// Precompiled is SentencePiece's character map, applied per grapheme cluster.
	Precompiled struct{ Map *charsmap.Map }
	// Bert is BertNormalizer, with strip_accents resolved.
	Bert struct{ CleanText, HandleChineseChars, StripAccents, Lowercase bool }
)

// Steps returns the only step.
func (Lowercase) Steps() Sequence { return Sequence{chars(charclass.AppendLower)} }

// Steps returns the only step.
func (StripAccents) Steps() Sequence { return Sequence{remove(charclass.CombiningMark)} }

// Steps returns the only step.
func (Nmt) Steps() Sequence { return Sequence{chars(charclass.AppendNmt)} }

// Unroll returns the steps of all components in order.
func Unroll(components []Component) Sequence {
	var s Sequence
	for _, c := range components {
		if several, ok := c.(interface{ Steps() Sequence }); ok {
			s = append(s, several.Steps()...)
		} else {
			s = append(s, c.(Step))
		}
	}
	return s
}

// Append implements Step.
func (c Precompiled) Append(dst, src []byte, e *Edges) []byte {
	from := len(dst)
	dst = c.Map.Append(dst, src)
	if e.Zero > 0 && !bytes.Equal(dst[from:], src) {
		e.Zero = c.Map.Leading(src, e.Zero)
	}
	return dst
}

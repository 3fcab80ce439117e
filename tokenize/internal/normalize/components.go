package normalize

import "github.com/dsload/dsload/tokenize/internal/charclass"

// Component describes a normalizer by value. Its Steps evaluate it.
type Component interface{ Steps() Sequence }

// The normalizers, with the fields of tokenizer.json.
type (
	// Form is one of the Unicode normalization forms NFC, NFD, NFKC and NFKD.
	Form struct{ Step Step }
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
	// Precompiled is SentencePiece's character map.
	Precompiled struct{ Map Mapper }
	// Bert is BertNormalizer, with strip_accents resolved.
	Bert struct{ CleanText, HandleChineseChars, StripAccents, Lowercase bool }
)

// Steps implements Component.
func (c Form) Steps() Sequence { return Sequence{c.Step} }

// Steps implements Component.
func (Lowercase) Steps() Sequence { return Sequence{chars(charclass.AppendLower)} }

// Steps implements Component.
func (StripAccents) Steps() Sequence { return Sequence{remove(charclass.CombiningMark)} }

// Steps implements Component.
func (Nmt) Steps() Sequence { return Sequence{chars(charclass.AppendNmt)} }

// Steps implements Component.
func (ByteLevel) Steps() Sequence { return Sequence{byteLevel{}} }

// Steps implements Component.
func (c Strip) Steps() Sequence { return Sequence{strip{c.Left, c.Right}} }

// Steps implements Component.
func (c Replace) Steps() Sequence { return Sequence{replace{c.Pattern, []byte(c.Content)}} }

// Steps implements Component.
func (c Prepend) Steps() Sequence { return Sequence{prepend(c.Text)} }

// Steps implements Component.
func (c Precompiled) Steps() Sequence { return Sequence{charsmap{c.Map}} }

// Unroll returns the steps of all components in order.
func Unroll(components []Component) Sequence {
	var s Sequence
	for _, c := range components {
		s = append(s, c.Steps()...)
	}
	return s
}

package pretokenize

import (
	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/normalize"
)

// Component is a pre-tokenizer as a file describes it: a Step, or something with Steps.
type Component any

// The pre-tokenizers, with the fields of tokenizer.json.
type (
	// Whitespace cuts into runs of word characters and runs of others, dropping white space.
	Whitespace struct{}
	// WhitespaceSplit cuts at white space, which it drops.
	WhitespaceSplit struct{}
	// Bert is BertPreTokenizer: WhitespaceSplit, then a split around punctuation.
	Bert struct{}
	// Punctuation splits at punctuation.
	Punctuation struct{ Behavior Behavior }
	// Digits splits around numbers, or around single digits.
	Digits struct{ Individual bool }
	// CharDelimiter cuts at a character, which it drops.
	CharDelimiter struct{ Char rune }
	// Split splits at the matches of a pattern.
	Split struct {
		Pattern  normalize.Pattern
		Behavior Behavior
		Invert   bool
	}
	// FixedLength cuts into pieces of Length characters.
	FixedLength struct{ Length int }
	// UnicodeScripts cuts where the script changes. As in the original, text before the first
	// character with a script is lost.
	UnicodeScripts struct{}
	// ByteLevel replaces bytes with characters of the byte-level alphabet, after cutting by Pattern
	// if Split is set. With PrefixSpace, pieces that do not begin with a space get one first.
	ByteLevel struct {
		PrefixSpace bool
		Split       bool
		Pattern     normalize.Pattern
	}
	// Metaspace turns spaces into Replacement, and cuts before each if Split is set.
	Metaspace struct {
		Replacement rune
		Prepend     Prepend
		Split       bool
	}
	// BeforeWords cuts before each run of a mark (SentencePiece's U+2581) that does not begin the
	// text.
	BeforeWords struct{ Mark rune }
)

// Steps returns the only step.
func (WhitespaceSplit) Steps() Sequence {
	return Sequence{classSplit{class(charclass.Whitespace), Removed}}
}

// Steps returns its two steps.
func (Bert) Steps() Sequence {
	return append(WhitespaceSplit{}.Steps(), Punctuation{Isolated}.Steps()...)
}

// Steps returns the only step.
func (c Punctuation) Steps() Sequence {
	return Sequence{classSplit{class(charclass.Punctuation), c.Behavior}}
}

// Steps returns the only step.
func (c Digits) Steps() Sequence {
	if c.Individual {
		return Sequence{classSplit{class(charclass.Numeric), Isolated}}
	}
	return Sequence{classSplit{class(charclass.Numeric), Contiguous}}
}

// Steps returns the only step.
func (c CharDelimiter) Steps() Sequence {
	return Sequence{classSplit{func(r rune) bool { return r == c.Char }, Removed}}
}

// Steps returns a step for each thing it does.
func (c ByteLevel) Steps() Sequence {
	var s Sequence
	if c.PrefixSpace {
		s = append(s, prefixSpace{})
	}
	if c.Split {
		s = append(s, Split{Pattern: c.Pattern, Behavior: Isolated})
	}
	return append(s, byteLevel{})
}

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

package spec

import (
	"errors"
	"strings"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/regex"
)

// MetaspaceChar is the character by which SentencePiece represents a space.
const MetaspaceChar = '\u2581'

// Metaspace is MetaspaceChar as a string.
const Metaspace = string(MetaspaceChar)

// ReplacesSpaces reports whether a normalizer replaces spaces with Metaspace.
func ReplacesSpaces(c normalize.Component) bool {
	r, ok := c.(normalize.Replace)
	return ok && !r.Pattern.IsRegex && r.Pattern.Text == " " && r.Content == Metaspace
}

// ByteLevelSplit recognizes ByteLevel with its own pattern, and a Split by a pattern followed by
// ByteLevel without one. pattern is empty for a single ByteLevel that does not split.
func (s *Spec) ByteLevelSplit() (pattern string, prefixSpace, ok bool) {
	n := len(s.PreTokenizer)
	if n == 0 || n > 2 {
		return "", false, false
	}
	last, ok := s.PreTokenizer[n-1].(pretokenize.ByteLevel)
	if !ok {
		return "", false, false
	}
	if n == 1 {
		if last.Split {
			pattern = last.Pattern.Text
		}
		return pattern, last.PrefixSpace, true
	}
	split, ok := s.PreTokenizer[0].(pretokenize.Split)
	if !ok || last.Split || last.PrefixSpace || !split.Pattern.IsRegex {
		return "", false, false
	}
	keeps := split.Behavior == pretokenize.Isolated && !split.Invert || split.Behavior == pretokenize.Removed &&
		split.Invert
	return split.Pattern.Text, false, keeps
}

// CutsAtSpaces reports whether text may be cut before a space between ASCII letters: no normalizer
// looks across, some pre-tokenizer cuts there, and the others treat each side independently.
func (s *Spec) CutsAtSpaces() bool {
	if !cuttableTokens(s.Normalized) {
		return false
	}
	spaces := true // spaces have not been replaced yet
	for _, c := range s.Normalizer {
		spaces = spaces && !ReplacesSpaces(c)
		switch c := c.(type) {
		case normalize.ByteLevel:
			return false
		case normalize.Replace:
			if !replaceIsLocal(c) {
				return false
			}
		}
	}
	return s.preTokenizerCuts(spaces)
}

// cuttableTokens reports whether none of the added tokens that are searched for in normalized text
// depends on its neighbours or contains a space.
func cuttableTokens(tokens []added.Token) bool {
	for _, t := range tokens {
		text := string(t.Content)
		if t.LStrip || t.RStrip || t.SingleWord || len(text) > 1 && strings.ContainsAny(text[1:], " "+Metaspace) {
			return false
		}
	}
	return true
}

// preTokenizerCuts reports whether some pre-tokenizer cuts at a space between letters before spaces
// are replaced.
func (s *Spec) preTokenizerCuts(spaces bool) bool {
	cuts := false
	for _, c := range s.PreTokenizer {
		switch c := c.(type) {
		case pretokenize.UnicodeScripts, pretokenize.FixedLength:
			return false
		case pretokenize.Split:
			switch {
			case !c.Pattern.IsRegex && len(c.Pattern.Text) != 1:
				return false
			case !c.Pattern.IsRegex:
			case known.CutsAtSpaces(c.Pattern.Text):
				cuts = cuts || spaces
			default:
				return cuts
			}
		case pretokenize.WhitespaceSplit, pretokenize.Whitespace, pretokenize.Bert:
			cuts = cuts || spaces
		case pretokenize.Metaspace:
			// It also cuts at its replacement, but not if another pre-tokenizer wrote that.
			ok := spaces || c.Replacement == MetaspaceChar && len(s.PreTokenizer) == 1
			cuts = cuts || ok && c.Split
			spaces = false
		case pretokenize.ByteLevel:
			cuts = cuts || spaces && c.Split
			spaces = false
		}
	}
	return cuts
}

// replaceIsLocal reports whether a Replace never matches across the boundary between a letter and a
// space, and never replaces a single space with text that pre-tokenizers treat differently.
func replaceIsLocal(c normalize.Replace) bool {
	text := c.Pattern.Text
	if !c.Pattern.IsRegex {
		if text == " " {
			return c.Content == Metaspace || c.Content == " "
		}
		return text != "" && !strings.Contains(text, " ") || strings.Trim(text, " ") == ""
	}
	switch text {
	case ` {2,}`:
		return true
	case `\s+`, `\s`:
		return c.Content == " "
	case `\n`, `\r\n`, `\t`, `[\n\r\t]`:
		return true
	}
	return false
}

// Compile compiles a regular expression in Oniguruma's syntax, as Hugging Face uses it.
func Compile(text string) (normalize.Pattern, error) {
	re, err := regex.Compile(text)
	if syntax, ok := errors.AsType[*regex.SyntaxError](err); ok && syntax.TooLarge {
		return normalize.Pattern{}, TooLargef("%v", err)
	}
	if err != nil {
		return normalize.Pattern{}, Unsupportedf("%v", err)
	}
	return normalize.Expression(re), nil
}

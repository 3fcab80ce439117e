package tokenize

import (
	"strings"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/bytebpe"
	"github.com/dsload/dsload/tokenize/internal/jsonx"
)

// shape is what the components of a tokenizer.json look like to the choice of an engine.
type shape struct {
	family string
	norm   []jsonx.Value // normalizers, sequences unrolled
	pre    []jsonx.Value // pre-tokenizers, sequences unrolled

	// Byte-level pre-tokenization by a known pattern.
	byteLevel   bool
	split       bytebpe.Split
	prefixSpace bool
}

// knownSplits are patterns that the byte-level engine cuts by hand-written scanners. Possessive quantifiers and the number of
// line breaks after white space make no difference to what matches. tiktoken's newest form of cl100k is not among them: to Oniguruma its
// \p{N}{1,3}+ is a run of any length, and its \s++$ takes line breaks along.
var knownSplits = map[string]bytebpe.Split{
	gpt2Pattern:  bytebpe.GPT2,
	llamaPattern: bytebpe.CL100K,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: bytebpe.CL100K,
	strings.Replace(llamaPattern, `\p{N}{1,3}`, `\p{N}`, 1):                                                         bytebpe.Qwen2,
	o200kPattern: bytebpe.O200K,
}

const (
	llamaPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// unroll lists the steps of a component; key is the member that holds a Sequence's steps.
func unroll(v jsonx.Value, key string) []jsonx.Value {
	if v.IsNull() {
		return nil
	}
	if v.Get("type").Text != "Sequence" {
		return []jsonx.Value{v}
	}
	var all []jsonx.Value
	for _, e := range v.Get(key).Elems {
		all = append(all, unroll(e, key)...)
	}
	return all
}

func kindOf(v jsonx.Value) string { return v.Get("type").Text }

func isTrue(v jsonx.Value, name string, absent bool) bool {
	if b := v.Get(name); !b.IsNull() {
		return b.Kind == 't'
	}
	return absent
}

func shapeOf(f *hfFile) shape {
	s := shape{norm: unroll(f.normalizer, "normalizers"), pre: unroll(f.preTokenizer, "pretokenizers")}
	s.findByteLevel()
	switch f.model.kind {
	case "WordPiece":
		s.family = "wordpiece"
	case "Unigram":
		s.family = "unigram"
	case "WordLevel":
		s.family = "wordlevel"
	default:
		s.family = "bpe"
		if f.model.byteFallback {
			s.family = "sentencepiece-bpe"
		}
		for _, v := range append(append([]jsonx.Value{}, s.pre...), s.norm...) {
			switch kindOf(v) {
			case "ByteLevel":
				s.family = "bytelevel-bpe"
			case "Metaspace":
				s.family = "sentencepiece-bpe"
			}
		}
	}
	return s
}

// findByteLevel recognizes ByteLevel with its own pattern, and a Split by a known pattern followed by ByteLevel without one.
func (s *shape) findByteLevel() {
	n := len(s.pre)
	if n == 0 || n > 2 || kindOf(s.pre[n-1]) != "ByteLevel" {
		return
	}
	last := s.pre[n-1]
	regex := isTrue(last, "use_regex", true)
	space := isTrue(last, "add_prefix_space", false)
	switch {
	case n == 1:
		s.byteLevel, s.split, s.prefixSpace = true, bytebpe.None, space
		if regex {
			s.split = bytebpe.GPT2
		}
	case !regex && !space && kindOf(s.pre[0]) == "Split":
		split, ok := knownSplits[s.pre[0].Get("pattern").Get("Regex").Text]
		invert := isTrue(s.pre[0], "invert", false)
		keeps := map[string]bool{"Isolated": !invert, "Removed": invert}[s.pre[0].Get("behavior").Text]
		if ok && keeps {
			s.byteLevel, s.split = true, split
		}
	}
}

// cutsAtSpaces says whether text may be cut before a space between ASCII letters: no normalizer looks across, some pre-tokenizer cuts
// there, and what the others do on one side does not depend on the other.
func (s *shape) cutsAtSpaces(normalized []added.Token) bool {
	for _, t := range normalized {
		text := string(t.Content)
		if t.LStrip || t.RStrip || t.SingleWord || len(text) > 1 && strings.ContainsAny(text[1:], " \u2581") {
			return false
		}
	}
	spaces := true // they are still there to be seen
	for _, n := range s.norm {
		spaces = spaces && !isReplace(n, " ", metaspaceChar)
		if kindOf(n) == "ByteLevel" || kindOf(n) == "Replace" && !replaceIsLocal(n) {
			return false
		}
	}
	if s.byteLevel && s.split != bytebpe.None {
		return spaces
	}
	cuts := false
	for _, p := range s.pre {
		switch kindOf(p) {
		case "UnicodeScripts", "FixedLength":
			return false
		case "Split":
			pattern := p.Get("pattern")
			if text := pattern.Get("String"); text.Kind == '"' {
				if len(text.Text) != 1 {
					return false
				}
			} else if _, known := knownSplits[pattern.Get("Regex").Text]; known {
				cuts = cuts || spaces
			} else {
				return cuts
			}
		case "WhitespaceSplit", "Whitespace", "BertPreTokenizer":
			cuts = cuts || spaces
		case "Metaspace":
			// It cuts at its replacement as well, though not where another pre-tokenizer wrote that.
			ok := spaces || p.Get("replacement").Text == metaspaceChar && len(s.pre) == 1
			cuts = cuts || ok && isTrue(p, "split", true)
			spaces = false
		case "ByteLevel":
			cuts = cuts || spaces && isTrue(p, "use_regex", true)
			spaces = false
		}
	}
	return cuts
}

// replaceIsLocal says that a Replace never matches across the beginning of a space that follows a letter, and does not take a
// single space for anything that the pre-tokenizers know.
func replaceIsLocal(v jsonx.Value) bool {
	pattern := v.Get("pattern")
	content := v.Get("content").Text
	if s := pattern.Get("String"); s.Kind == '"' {
		if s.Text == " " {
			return content == "\u2581" || content == " "
		}
		return s.Text != "" && !strings.Contains(s.Text, " ") || strings.Trim(s.Text, " ") == ""
	}
	switch pattern.Get("Regex").Text {
	case ` {2,}`:
		return true
	case `\s+`, `\s`:
		return content == " "
	case `\n`, `\r\n`, `\t`, `[\n\r\t]`:
		return true
	}
	return false
}

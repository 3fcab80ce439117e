// Package known lists published facts about tokenizers that their files do not hold: the named
// patterns by which they split text, and the vocabularies of ranks with their special tokens.
package known

import (
	"fmt"
	"strings"
)

// The patterns, in Oniguruma's syntax.
const (
	// GPT2 is the split of GPT-2, r50k_base and p50k_base, which the ByteLevel pre-tokenizer uses.
	GPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	// Llama3 is the split of Llama 3, and of cl100k_base.
	Llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// Qwen2 is Llama3 with single digits.
	Qwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// O200K is the split of o200k_base: words end where upper case follows lower case.
	O200K = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// Kimi is the split of Kimi K2: runs of Han characters, and the words of O200K without Han
	// characters.
	Kimi = `[\p{Han}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	// possessive is a form of cl100k_base with possessive quantifiers. It matches the same texts.
	possessive = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	// TiktokenCL100K is cl100k_base as tiktoken writes it. In Oniguruma \p{N}{1,3}+ is a run of any
	// length and \s++$ includes line breaks, so in a tokenizer.json it means something else.
	TiktokenCL100K = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`
)

// patterns lists the named patterns in the order of PatternNames.
var patterns = []struct{ name, text string }{
	{"gpt2", GPT2}, {"cl100k", Llama3}, {"o200k", O200K}, {"llama3", Llama3}, {"qwen2", Qwen2}, {"kimi", Kimi},
}

// PatternNames lists the patterns that have a name.
func PatternNames() []string {
	names := make([]string, len(patterns))
	for i, p := range patterns {
		names[i] = p.name
	}
	return names
}

// Pattern returns the pattern of a name. It also accepts TiktokenCL100K as a name of cl100k.
func Pattern(name string) (text string, ok bool) {
	if name == TiktokenCL100K {
		return Llama3, true
	}
	for _, p := range patterns {
		if p.name == name {
			return p.text, true
		}
	}
	return "", false
}

// Canonical returns the pattern above that matches the same texts as text does, or text itself.
func Canonical(text string) string {
	if text == possessive {
		return Llama3
	}
	return text
}

// CutsAtSpaces reports whether a pattern always cuts before a space between an ASCII letter or
// digit and an ASCII letter.
func CutsAtSpaces(text string) bool {
	switch Canonical(text) {
	case GPT2, Llama3, Qwen2, O200K, Kimi:
		return true
	}
	return false
}

// Vocabulary is a published vocabulary of ranks.
type Vocabulary struct {
	Name    string // its file's name, without .tiktoken
	Ranks   int    // their number, by which a file is recognized
	Pattern string // its name
	Guess   bool   // other vocabularies may have as many ranks, so recognizing it by their number gives a warning
	special func(ranks uint32) map[string]uint32
}

// Special maps the special tokens to their ids, for a file with this number of ranks.
func (v *Vocabulary) Special(ranks int) map[string]uint32 { return v.special(uint32(ranks)) }

// vocabularies lists the vocabularies in order of size.
var vocabularies = []Vocabulary{
	{Name: "gpt2", Ranks: 50256, Pattern: "gpt2", special: fixed(map[string]uint32{"<|endoftext|>": 50256})},
	{Name: "p50k_base", Ranks: 50280, Pattern: "gpt2", special: fixed(map[string]uint32{"<|endoftext|>": 50256})},
	{Name: "cl100k_base", Ranks: 100256, Pattern: "cl100k", special: fixed(map[string]uint32{
		"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260,
		"<|endofprompt|>": 100276})},
	{Name: "llama3", Ranks: 128000, Pattern: "llama3", special: llama3Special, Guess: true},
	{Name: "qwen", Ranks: 151643, Pattern: "qwen2",
		special: fixed(map[string]uint32{"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645})},
	{Name: "kimi-k2", Ranks: 163584, Pattern: "kimi", special: kimiSpecial, Guess: true},
	{Name: "o200k_base", Ranks: 199998, Pattern: "o200k",
		special: fixed(map[string]uint32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018})},
}

func find(is func(*Vocabulary) bool) *Vocabulary {
	for i := range vocabularies {
		if is(&vocabularies[i]) {
			return &vocabularies[i]
		}
	}
	return nil
}

// ByName returns the vocabulary of that name, or nil.
func ByName(name string) *Vocabulary { return find(func(v *Vocabulary) bool { return v.Name == name }) }

// BySize returns the vocabulary with that number of ranks, or nil.
func BySize(ranks int) *Vocabulary { return find(func(v *Vocabulary) bool { return v.Ranks == ranks }) }

// ByPattern returns the vocabulary whose special tokens belong to a named pattern: the one with
// that number of ranks, or one whose special tokens follow any number of ranks. It returns nil if
// there is none.
func ByPattern(name string, ranks int) *Vocabulary {
	return find(func(v *Vocabulary) bool { return v.Pattern == name && (v.Guess || v.Ranks == ranks) })
}

func fixed(m map[string]uint32) func(uint32) map[string]uint32 {
	return func(uint32) map[string]uint32 { return m }
}

// reservedTokens is how many special tokens follow the ranks of Llama 3 and of Kimi K2.
const reservedTokens = 256

// llama3Special lists the special tokens of Llama 3, which counts those without a name.
func llama3Special(ranks uint32) map[string]uint32 {
	unnamed := -1
	return reserved(ranks, map[uint32]string{
		0: "<|begin_of_text|>", 1: "<|end_of_text|>", 6: "<|start_header_id|>", 7: "<|end_header_id|>", 9: "<|eot_id|>",
	}, func(uint32) string { unnamed++; return fmt.Sprintf("<|reserved_special_token_%d|>", unnamed) })
}

// kimiSpecial lists the special tokens of Kimi K2.
func kimiSpecial(ranks uint32) map[string]uint32 {
	return reserved(ranks, map[uint32]string{
		0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>", 6: "<|start_header_id|>",
		7: "<|end_header_id|>", 9: "[EOT]", 10: "<|im_system|>", 11: "<|tool_calls_section_begin|>",
		12: "<|tool_calls_section_end|>", 13: "<|tool_call_begin|>", 14: "<|tool_call_argument_begin|>",
		15: "<|tool_call_end|>", 17: "<|im_middle|>", 254: "[UNK]", 255: "[PAD]",
	}, func(id uint32) string { return fmt.Sprintf("<|reserved_token_%d|>", id) })
}

// reserved lists the special tokens after the ranks, some of which are named, in order of their ids.
func reserved(ranks uint32, named map[uint32]string, unnamed func(id uint32) string) map[string]uint32 {
	m := make(map[string]uint32, reservedTokens)
	for i := range uint32(reservedTokens) {
		token, ok := named[i]
		if !ok {
			token = unnamed(ranks + i)
		}
		m[token] = ranks + i
	}
	return m
}

// IsExpression reports whether text looks like a regular expression rather than a name.
func IsExpression(text string) bool { return strings.ContainsAny(text, `\[]()|*+?.^${}`) }

package builtin

import (
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/tokenize"
)

// Names lists the built-in tokenizers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(files)) }

// Has reports whether Open knows the name.
func Has(name string) bool {
	_, ok := files[canonical(name)]
	return ok
}

// canonical maps tiktoken's names to ours: r50k_base is gpt2.
func canonical(name string) string {
	name = strings.TrimSuffix(name, "_base")
	if name == "r50k" {
		return "gpt2"
	}
	return name
}

// Open returns the tokenizer gpt2, p50k, cl100k or o200k. It also accepts tiktoken's names:
// r50k_base, p50k_base, cl100k_base and o200k_base. Its fingerprint differs from that of a
// tokenizer.json with equal ids.
func Open(name string) (*tokenize.Tokenizer, error) { return OpenWithin(name, 0) }

// OpenWithin is Open within maxMemory bytes. If the tokenizer needs more, the error wraps
// tokenize.ErrTooLarge. 0 means no limit.
func OpenWithin(name string, maxMemory int64) (*tokenize.Tokenizer, error) {
	name = canonical(name)
	v, err := Ranks(name)
	if err != nil {
		return nil, err
	}
	return tokenize.FromRanks(tokenize.Ranks{Name: name, Pattern: v.Split, Tokens: v.Tokens, Special: v.Special,
		MaxMemory: maxMemory})
}

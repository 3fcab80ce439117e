package builtin

import (
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/tokenize"
)

// Names lists the built-in tokenizers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(files)) }

// Has tells whether Open knows the name.
func Has(name string) bool {
	_, ok := files[canonical(name)]
	return ok
}

// canonical accepts the names that rank files have elsewhere.
func canonical(name string) string { return strings.TrimSuffix(name, "_base") }

// Open makes the tokenizer called gpt2, cl100k or o200k (cl100k_base and o200k_base mean the same). Its fingerprint differs from that of a tokenizer.json
// with equal ids.
func Open(name string) (*tokenize.Tokenizer, error) {
	name = canonical(name)
	v, err := Ranks(name)
	if err != nil {
		return nil, err
	}
	return tokenize.FromRanks(tokenize.Ranks{Name: name, Pattern: v.Split, Tokens: v.Tokens, Special: v.Special})
}

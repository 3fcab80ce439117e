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

// canonical accepts the names that rank files have elsewhere: gpt2's are called r50k_base.
func canonical(name string) string {
	name = strings.TrimSuffix(name, "_base")
	if name == "r50k" {
		return "gpt2"
	}
	return name
}

// Open makes the tokenizer called gpt2, p50k, cl100k or o200k, or by tiktoken's names r50k_base,
// p50k_base, cl100k_base or o200k_base. Its fingerprint differs from that of a tokenizer.json with
// equal ids.
func Open(name string) (*tokenize.Tokenizer, error) { return OpenWithin(name, 0) }

// OpenWithin is Open in at most maxMemory bytes: where it takes more, the error wraps
// tokenize.ErrTooLarge. 0 is no limit.
func OpenWithin(name string, maxMemory int64) (*tokenize.Tokenizer, error) {
	name = canonical(name)
	v, err := Ranks(name)
	if err != nil {
		return nil, err
	}
	return tokenize.FromRanks(tokenize.Ranks{Name: name, Pattern: v.Split, Tokens: v.Tokens, Special: v.Special,
		MaxMemory: maxMemory})
}

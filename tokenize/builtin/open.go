package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/tiktoken"
)

// Names lists the built-in tokenizers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(vocabularies)) }

// Has reports whether Open knows the name.
func Has(name string) bool {
	_, ok := vocabularies[canonical(name)]
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
	prepared := vocabularies[name].prepared
	if prepared == nil {
		v, err := Ranks(name)
		if err != nil {
			return nil, err
		}
		return tokenize.FromRanks(tokenize.Ranks{Name: name, Pattern: v.Split, Tokens: v.Tokens, Special: v.Special,
			MaxMemory: maxMemory})
	}
	mem := spec.NewMeter(maxMemory)
	model, fingerprint, err := prepare(prepared, mem)
	if err != nil {
		return nil, fmt.Errorf("read built-in vocabulary %s: %w", name, err)
	}
	k := known.ByName(vocabularies[name].known)
	s, err := tiktoken.Prepared(tiktoken.Ranks{Name: name, Pattern: k.Pattern, Special: k.Special(model.Vocab.Len())},
		model, fingerprint)
	if err != nil {
		return nil, err
	}
	t, err := spec.NewTokenizer(s, mem)
	if err != nil {
		return nil, err
	}
	return t.(*tokenize.Tokenizer), nil
}

package tokenize

import (
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/tiktoken"
)

// Ranks describes a byte-level BPE by its ranks, as tiktoken does: the rank of a merge's result is
// its priority.
type Ranks struct {
	// Name is what Tokenizer.Name returns.
	Name string
	// Pattern is the split: gpt2, cl100k, o200k, llama3, qwen2, kimi, or a regular expression in Oniguruma's
	// syntax, in which text between matches forms pieces too. If empty, it is found by the number of ranks.
	Pattern string
	// Tokens holds the bytes of each rank; nil if a rank is not used. FromRanks does not keep it.
	Tokens [][]byte
	// Special maps special tokens to their ids. If nil, those of the pattern's known vocabularies
	// are taken.
	Special map[string]uint32
	// MaxMemory bounds the bytes that the tables take while they are built, tokens included, as in
	// Options.
	MaxMemory int64
}

// FromRanks returns a tokenizer for ranks in memory. Errors wrap ErrFormat, ErrUnsupported,
// ErrPattern or ErrTooLarge.
func FromRanks(r Ranks) (*Tokenizer, error) {
	mem := spec.NewMeter(r.MaxMemory)
	var text int64
	for _, t := range r.Tokens {
		text += int64(len(t))
	}
	if err := mem.Take(24*int64(len(r.Tokens))+text, "the ranks"); err != nil {
		return nil, err
	}
	s, err := tiktoken.New(tiktoken.Ranks{Name: r.Name, Pattern: r.Pattern, Tokens: r.Tokens, Special: r.Special}, mem)
	if err != nil {
		return nil, err
	}
	return newTokenizer(s, mem)
}

func init() {
	spec.NewTokenizer = func(s *spec.Spec, mem *spec.Meter) (any, error) { return newTokenizer(s, mem) }
}

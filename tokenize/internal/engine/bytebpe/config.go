package bytebpe

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/pairhash"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// Split selects how text is cut into pre-tokens before merging.
type Split uint8

const (
	// GPT2 is the pattern of Hugging Face's ByteLevel with use_regex: GPT-2, RoBERTa, and
	// r50k_base, p50k_base.
	GPT2 Split = iota
	// CL100K is the pattern of cl100k_base and Llama 3: case-insensitive contractions, numbers of
	// up to three digits.
	CL100K
	// Qwen2 is CL100K with single digits.
	Qwen2
	// O200K is the pattern of o200k_base: words split where lower case meets upper case,
	// contractions stay with their word.
	O200K
	// None takes the whole segment as one pre-token.
	None
	numSplits
)

func (s Split) String() string {
	if s < numSplits {
		return [...]string{"gpt2", "cl100k", "qwen2", "o200k", "none"}[s]
	}
	return fmt.Sprintf("Split(%d)", uint8(s))
}

// MaxID is the largest token id that the engine accepts: cached values hold ids of 20 bits, and one
// value means "no token".
const MaxID = 1<<20 - 2

// Merge joins two neighbouring tokens into Result.
type Merge = vocab.Merge

// Config describes a model. It may come from an untrusted file; New checks all of it but Pairs.
type Config struct {
	// Vocab holds the raw bytes of every token (after undoing the byte-level alphabet). An id
	// without a token takes no part in merging, such as that of an added token. There are at most
	// MaxID+1 ids. With Ranked or IgnoreMerges, no two tokens may be equal. The model keeps it.
	Vocab *vocab.Table

	// Merges lists the merges in order of priority, best first. Of equal pairs the last counts, as
	// in Hugging Face's loader. The bytes of Result must be those of Left and Right together.
	Merges []Merge

	// Ranked means that the ids themselves are the priorities (.tiktoken files): any two neighbours
	// whose concatenation is a token may merge, the lowest id first. Merges must be nil. A
	// pre-token that is a token is not merged, as with IgnoreMerges.
	Ranked bool

	// Pairs holds the rank of every pair of tokens that merges, for Ranked. If nil, New finds them.
	Pairs *pairhash.Table

	// Split is the pre-tokenizer.
	Split Split

	// IgnoreMerges encodes a pre-token that is a token as that token, without merging.
	IgnoreMerges bool
}

// ErrConfig is wrapped by every error of New.
var ErrConfig = errors.New("bytebpe: invalid model")

func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

func (c *Config) validate() error {
	if c.Split >= numSplits {
		return configError("unknown split %d", c.Split)
	}
	if c.Vocab.Len() > MaxID+1 {
		return configError("%d ids, the limit is %d", c.Vocab.Len(), MaxID+1)
	}
	if first, again, ok := c.Vocab.Twice(); ok && (c.Ranked || c.IgnoreMerges) {
		return configError("tokens %d and %d are equal", first, again)
	}
	if c.Ranked && c.Merges != nil {
		return configError("both ranks and merges")
	}
	if len(c.Merges) > MaxID {
		return configError("%d merges, the limit is %d", len(c.Merges), MaxID)
	}
	for id := range uint32(c.Vocab.Len()) {
		if t, ok := c.Vocab.Token(id); ok && len(t) == 0 {
			return configError("token %d is empty", id)
		}
	}
	for i, m := range c.Merges {
		var text [3][]byte
		for j, id := range [3]uint32{m.Left, m.Right, m.Result} {
			var ok bool
			if text[j], ok = c.Vocab.Token(id); !ok {
				return configError("merge %d refers to token %d, which does not exist", i, id)
			}
		}
		l, r, t := text[0], text[1], text[2]
		if len(t) != len(l)+len(r) || !bytes.HasPrefix(t, l) || !bytes.HasSuffix(t, r) {
			return configError("merge %d of tokens %d and %d does not make token %d", i, m.Left, m.Right, m.Result)
		}
	}
	return nil
}

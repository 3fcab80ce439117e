package train

import (
	"cmp"
	"fmt"
	"slices"
)

// Family is the kind of model to learn.
type Family string

// The families that can be trained.
const (
	ByteLevelBPE Family = "bytelevel-bpe"
	WordPiece    Family = "wordpiece"
	Unigram      Family = "unigram"
)

// Families lists all families.
var Families = []Family{ByteLevelBPE, WordPiece, Unigram}

// Options configures a Trainer. The zero value learns a byte-level BPE of 32,000 tokens with
// GPT-2's split. Every field changes the result.
type Options struct {
	// Family is the kind of model (default ByteLevelBPE).
	Family Family
	// VocabSize is the number of tokens, special ones included (default 32000). The result has
	// fewer if the text runs out of pairs.
	VocabSize int
	// MinFrequency is the number of occurrences that a merge needs (default 2). Unigram ignores it.
	MinFrequency int
	// SpecialTokens get the lowest ids, in this order (default by family: <|endoftext|>; [PAD]
	// [UNK] [CLS] [SEP] [MASK]; <pad> </s> <unk>). WordPiece needs [UNK] among them and Unigram
	// <unk>.
	SpecialTokens []string
	// Split names the pattern that cuts the text of a byte-level BPE into words: gpt2, cl100k,
	// qwen2 or o200k (default gpt2).
	Split string
	// Lowercase maps text to lower case first. WordPiece then strips accents too, as uncased BERT
	// does.
	Lowercase bool
	// MaxMemory bounds the tables in bytes (default 256 MiB, at least 1 MiB). Garbage may take as
	// much again.
	MaxMemory int64
}

func (o Options) withDefaults() Options {
	o.Family = cmp.Or(o.Family, ByteLevelBPE)
	o.VocabSize = cmp.Or(o.VocabSize, 32000)
	o.MinFrequency = cmp.Or(o.MinFrequency, 2)
	if o.SpecialTokens == nil {
		o.SpecialTokens = defaultSpecial[o.Family]
	}
	if o.Split == "" && o.Family == ByteLevelBPE {
		o.Split = "gpt2"
	}
	o.MaxMemory = cmp.Or(o.MaxMemory, 256<<20)
	return o
}

var defaultSpecial = map[Family][]string{
	ByteLevelBPE: {"<|endoftext|>"},
	WordPiece:    {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"},
	Unigram:      {"<pad>", "</s>", "<unk>"},
}

// unknownToken is the special token that a family requires.
var unknownToken = map[Family]string{WordPiece: "[UNK]", Unigram: "<unk>"}

const (
	maxVocabSize = 1 << 20
	minMemory    = 1 << 20
)

func (o Options) validate() error {
	if _, ok := defaultSpecial[o.Family]; !ok {
		return fmt.Errorf("family %q: must be %s, %s or %s", o.Family, ByteLevelBPE, WordPiece, Unigram)
	}
	if o.Split != "" && o.Family != ByteLevelBPE {
		return fmt.Errorf("split %q: only %s has one", o.Split, ByteLevelBPE)
	}
	if _, ok := splits[o.Split]; !ok && o.Split != "" {
		return fmt.Errorf("split %q: must be gpt2, cl100k, qwen2 or o200k", o.Split)
	}
	least := len(o.SpecialTokens) + 1
	if o.Family == ByteLevelBPE {
		least = len(o.SpecialTokens) + 256
	}
	if o.VocabSize < least || o.VocabSize > maxVocabSize {
		return fmt.Errorf("vocabulary of %d tokens: must be %d to %d", o.VocabSize, least, maxVocabSize)
	}
	if o.MinFrequency < 1 {
		return fmt.Errorf("minimum frequency %d: must be at least 1", o.MinFrequency)
	}
	if o.MaxMemory < minMemory {
		return fmt.Errorf("memory of %d bytes: must be at least %d", o.MaxMemory, minMemory)
	}
	seen := map[string]bool{}
	for _, s := range o.SpecialTokens {
		if s == "" || seen[s] {
			return fmt.Errorf("special token %q is empty or occurs twice", s)
		}
		seen[s] = true
	}
	if unk := unknownToken[o.Family]; unk != "" && !slices.Contains(o.SpecialTokens, unk) {
		return fmt.Errorf("special tokens of %s must include %s", o.Family, unk)
	}
	return nil
}

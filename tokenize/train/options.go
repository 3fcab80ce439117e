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

// OptionError reports a field of Options that New does not accept.
type OptionError struct {
	Field string // a field of Options
	Value any
	Why   string
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s %v: %s", e.Field, e.Value, e.Why) }

func invalid(field string, value any, why string, args ...any) error {
	return &OptionError{Field: field, Value: value, Why: fmt.Sprintf(why, args...)}
}

func (o Options) validate() error {
	if _, ok := defaultSpecial[o.Family]; !ok {
		return invalid("Family", o.Family, "must be %s, %s or %s", ByteLevelBPE, WordPiece, Unigram)
	}
	if o.Split != "" && o.Family != ByteLevelBPE {
		return invalid("Split", o.Split, "only the family %s has one", ByteLevelBPE)
	}
	if _, ok := splits[o.Split]; !ok && o.Split != "" {
		return invalid("Split", o.Split, "must be gpt2, cl100k, qwen2 or o200k")
	}
	least, alphabet := len(o.SpecialTokens)+1, ""
	if o.Family == ByteLevelBPE {
		least, alphabet = len(o.SpecialTokens)+256, " and the 256 bytes"
	}
	if o.VocabSize < least || o.VocabSize > maxVocabSize {
		return invalid("VocabSize", o.VocabSize, "must be %d to %d: special tokens%s come first", least, maxVocabSize,
			alphabet)
	}
	if o.MinFrequency < 1 {
		return invalid("MinFrequency", o.MinFrequency, "must be at least 1")
	}
	if o.MaxMemory < minMemory {
		return invalid("MaxMemory", o.MaxMemory, "must be at least %d bytes", minMemory)
	}
	seen := map[string]bool{}
	for _, s := range o.SpecialTokens {
		if s == "" || seen[s] {
			return invalid("SpecialTokens", fmt.Sprintf("%q", s), "is empty or occurs twice")
		}
		seen[s] = true
	}
	if unk := unknownToken[o.Family]; unk != "" && !slices.Contains(o.SpecialTokens, unk) {
		return invalid("SpecialTokens", o.SpecialTokens, "must include %s for the family %s", unk, o.Family)
	}
	return nil
}

package tokenize

// Ranks describes a byte-level BPE by its ranks, as tiktoken does: a merge's priority is the rank of its result.
type Ranks struct {
	// Name is what Tokenizer.Name returns.
	Name string
	// Pattern names the split: "gpt2" (r50k, p50k), "cl100k" or "o200k". An empty Pattern is found by the number of
	// ranks.
	Pattern string
	// Tokens holds the bytes of each rank; nil where a rank is not used. FromRanks does not keep it.
	Tokens [][]byte
	// Special maps special tokens to their ids.
	Special map[string]uint32
}

// FromRanks makes a tokenizer of ranks in memory.
func FromRanks(r Ranks) (*Tokenizer, error) {
	return nil, unsupportedf("ranks")
}

// ParseTiktoken reads a .tiktoken file: lines of a base64 token, a space and its rank. pattern and special are as in
// Ranks; where special is nil, a known pattern brings its own.
func ParseTiktoken(data []byte, pattern string, special map[string]uint32) (*Tokenizer, error) {
	return nil, unsupportedf("tiktoken")
}

func looksLikeTiktoken(data []byte) bool { return false }

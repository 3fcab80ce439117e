package tokenize

// Special holds the ids of well-known special tokens; -1 where a tokenizer has none.
type Special struct {
	BOS, EOS, PAD, UNK, CLS, SEP, MASK int
}

func noSpecial() Special { return Special{-1, -1, -1, -1, -1, -1, -1} }

package wordpiece

// Config describes a model and the BertNormalizer before it. It may come from an untrusted file;
// New checks all of it.
type Config struct {
	// Pieces holds the bytes of every vocabulary entry; the index is the id. A nil entry is an id
	// that is not used.
	Pieces [][]byte

	// UnkID is the id of a word that cannot be spelled.
	UnkID uint32

	// Prefix marks pieces that continue a word ("##").
	Prefix []byte

	// MaxInputCharsPerWord is the length of the longest word that is spelled, in characters,
	// usually 100. Longer words are unknown.
	MaxInputCharsPerWord int

	// Normalizer holds BertNormalizer's settings.
	Normalizer Normalizer
}

// Normalizer holds the settings of Hugging Face's BertNormalizer, with strip_accents resolved (null
// means the value of lowercase).
type Normalizer struct {
	CleanText          bool
	HandleChineseChars bool
	StripAccents       bool
	Lowercase          bool
}

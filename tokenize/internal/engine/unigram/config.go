package unigram

import (
	"errors"

	"github.com/dsload/dsload/tokenize/internal/charsmap"
)

// ErrUnsupported reports that a Config is well formed but that this engine does not compute it
// exactly. The general pipeline does, with AppendWord as its model. Errors that wrap it name the
// reason.
var ErrUnsupported = errors.New("unigram: unsupported model")

// Split says how normalized text becomes words.
type Split uint8

const (
	// SplitWords is WhitespaceSplit followed by Metaspace with prepend_scheme "always": each run of
	// characters other than white space is a word.
	SplitWords Split = iota
	// SplitMetaspace is Metaspace alone: each space (or literal U+2581) begins a word; Prefix says
	// whether the first word of a segment gets one.
	SplitMetaspace
	// SplitNone is SentencePiece's own split: the whole text is one word, and the search uses
	// float32.
	SplitNone
)

// Config describes a model together with the normalizer and pre-tokenizer around it. It may come
// from an untrusted file; New checks all of it.
type Config struct {
	// Pieces holds the bytes of every vocabulary entry; the index is the id. Scores are log
	// probabilities: for tokenizer.json exactly the float64 that serde_json reads (see jsonx.ParseFloat),
	// for a .model its float32.
	Pieces [][]byte
	Scores []float64

	// UnkID is the id of the unknown piece, or -1.
	UnkID int

	// ByteFallback encodes unknown text as the pieces <0x00>..<0xFF> if all of its bytes have one.
	// ByteIDs maps a byte to its id or -1.
	ByteFallback bool
	ByteIDs      [256]int32

	// NoMatch[id] marks pieces that never match text (SentencePiece control, unknown, byte and
	// unused pieces). UserDefined lists SentencePiece's user-defined symbols. Both only with
	// SplitNone.
	NoMatch     []bool
	UserDefined []uint32

	// Nmt applies the Nmt normalizer, then Charsmap (nil: none) applies a precompiled character
	// map.
	Nmt      bool
	Charsmap *charsmap.Map

	// Normalize, with SplitNone in place of all other normalizers, appends the normalized text, in
	// which spaces are U+2581; nil for none. Charsmap is then the one that it applies.
	Normalize func(dst, text []byte) []byte

	// Split says how normalized text becomes words.
	Split Split

	// StripRight then removes white space at the end of a segment, and CollapseSpaces turns runs of
	// spaces into one (Replace of " {2,}" by " " or by U+2581, which is the same for
	// SplitMetaspace). Neither has an effect with SplitWords.
	StripRight     bool
	CollapseSpaces bool

	// Prefix puts a U+2581 before a segment for which Append is called with first set, unless
	// (SplitMetaspace) it begins with one. SplitWords ignores it: all of its words get one.
	Prefix bool

	// PrefixFirst means that Prefix stands for prepend_scheme "first": first is set only for the
	// segment at the beginning of a document.
	PrefixFirst bool
}

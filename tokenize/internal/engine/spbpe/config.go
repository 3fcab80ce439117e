package spbpe

import "errors"

// ErrUnsupported reports that a Config is well formed but that this engine does not compute it
// exactly; package plain does. Errors that wrap it name the reason.
var ErrUnsupported = errors.New("spbpe: unsupported model")

// Prefix selects what Append puts before a segment if first is set.
type Prefix uint8

const (
	// PrefixNever adds nothing.
	PrefixNever Prefix = iota
	// PrefixAlways puts one space (U+2581) before every segment that is not empty: the Prepend
	// normalizer and SentencePiece's add_dummy_prefix.
	PrefixAlways
	// PrefixUnlessSpace does so unless the segment begins with a space or U+2581: the Metaspace
	// pre-tokenizer.
	PrefixUnlessSpace
)

// Config describes a model. It may come from an untrusted file; New checks all of it.
type Config struct {
	// Pieces holds the bytes of every vocabulary entry; the index is the id. A nil entry is an id
	// that is not used. Spaces appear as U+2581. No two entries may be equal.
	Pieces [][]byte

	// Merges lists pairs of ids, best first. The concatenation of a pair must be a piece. Leave it
	// nil for SentencePiece models, which set Scores.
	Merges [][2]uint32

	// Scores, one per piece, selects SentencePiece's own algorithm: any two neighbours whose
	// concatenation is a piece may merge, highest score first, leftmost among equals. NoMerge marks
	// the pieces that merges must not make.
	Scores []float32

	// NoMerge[id] is set for pieces that never match text (SentencePiece control, unknown and byte
	// pieces). nil means none. Only with Scores.
	NoMerge []bool

	// UserDefined lists the ids of SentencePiece's user-defined symbols, which are cut out of the
	// text first, leftmost and then longest. Only with Scores.
	UserDefined []uint32

	// ByteFallback encodes characters without a piece as the ids of their bytes. ByteIDs maps bytes
	// to ids; -1 is a byte without a token.
	ByteFallback bool
	ByteIDs      [256]int32

	// UnkID is the id of the unknown token, or -1. FuseUnk encodes a run of unknown characters as
	// one.
	UnkID   int
	FuseUnk bool

	// Prefix is what the beginning of a segment gets in front.
	Prefix Prefix

	// SplitSpaces makes every space begin a new word: Metaspace with split.
	SplitSpaces bool
}

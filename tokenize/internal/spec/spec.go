// Package spec describes a tokenizer by values: what a file says, read once. internal/hf,
// internal/tiktoken and internal/spmodel each read one kind of file into a Spec; internal/pipeline
// chooses an engine by the types in it.
//
//	file -> Spec -> pipeline
//
// A Spec is immutable. Its components come from internal/normalize, internal/pretokenize and
// internal/decode, which both describe and evaluate them.
package spec

import (
	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/decode"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pairhash"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// MaxID bounds token ids, since tables are indexed by id. No known vocabulary is near it.
const MaxID = 1<<24 - 1

// Spec is a tokenizer.
type Spec struct {
	Name         string // the tokenizer's name if its file has none
	Names        Names
	Fingerprint  string // hex SHA-256 of what determines the ids
	FileName     string // the name of a copy of the file
	Added        []Added
	Raw          []added.Token // added tokens to search for in the original text
	Normalized   []added.Token // added tokens to search for in normalized text
	Normalizer   []normalize.Component
	PreTokenizer []pretokenize.Component
	Model        Model
	Around       Around
	Decoder      Decoder
	Warnings     []string // parts of the file that have no effect
	Truncation   int      // tokens to which the file cuts texts, which has no effect either; 0 for none

	// What files beside the tokenizer's own add to it: to its tokenizer.json, or to what a file of another kind has no
	// place for, as a tokenizer_config.json. nil for nothing.
	Patch    *Patch
	Config   []byte
	Unlisted []string // added tokens, with the ids that no file gives them
}

// Names holds the components in the words of the file, "" for those that are absent.
type Names struct{ Normalizer, PreTokenizer, Model, PostProcessor, Decoder string }

// Added is an added token with its id. A later one replaces an earlier one with the same content or
// id.
type Added struct {
	Content string
	ID      uint32
	Special bool
	Decoded string // its form in decoded text
}

// Around is what a post-processor puts around a single sequence.
type Around struct {
	Prefix, Suffix []uint32
	CLS, SEP       int // -1 if the post-processor names none

	// Trims excludes white space at the ends of tokens from their offsets. With TrimsPrefixSpace
	// the inserted space of the first token is not excluded.
	Trims, TrimsPrefixSpace bool
}

// Model is one of *BPE, *WordPiece, *WordLevel, *Unigram, *Ranks and *SentencePiece.
type Model interface{ Table() *vocab.Table }

// BPE is Hugging Face's byte pair encoding.
type BPE struct {
	Vocab                               *vocab.Table
	Merges                              []vocab.Merge // best first
	Unk                                 int64         // id of unknown characters, -1 for none
	FuseUnk, ByteFallback, IgnoreMerges bool
	Prefix, Suffix                      string // continuing_subword_prefix, end_of_word_suffix
}

// WordPiece spells a word with the longest tokens from the left.
type WordPiece struct {
	Vocab    *vocab.Table
	Unk      int64 // id of unknown words
	Prefix   string
	MaxChars uint64 // longer words are unknown
}

// WordLevel maps whole words to ids.
type WordLevel struct {
	Vocab *vocab.Table
	Unk   int64 // id of unknown words
}

// Unigram is Hugging Face's Unigram model. Of equal tokens the last counts.
type Unigram struct {
	Vocab        *vocab.Table
	Scores       []float64
	Unk          int // id of unknown text, -1 for none
	ByteFallback bool
}

// Ranks is a byte-level BPE whose ids are its priorities, as in tiktoken.
type Ranks struct {
	Vocab *vocab.Table
	Pairs *pairhash.Table // the ranks of the pairs that merge; nil: the engine finds them
}

// SentencePiece is a SentencePiece model of type BPE or Unigram. Its normalizer is the only
// component of Spec.Normalizer.
type SentencePiece struct {
	Unigram      bool
	Vocab        *vocab.Table
	Scores       []float32
	Kinds        []PieceKind
	Unk          int
	ByteFallback bool
	ByteIDs      [256]int32 // ids of the byte pieces, -1 for none
}

// PieceKind is the type of a SentencePiece piece, with the file's numbers.
type PieceKind uint8

// The kinds of pieces.
const (
	Normal      PieceKind = 1
	Unknown     PieceKind = 2
	Control     PieceKind = 3
	UserDefined PieceKind = 4
	Unused      PieceKind = 5
	Byte        PieceKind = 6
)

// Table returns the vocabulary.
func (m *BPE) Table() *vocab.Table { return m.Vocab }

// Table returns the vocabulary.
func (m *WordPiece) Table() *vocab.Table { return m.Vocab }

// Table returns the vocabulary.
func (m *WordLevel) Table() *vocab.Table { return m.Vocab }

// Table returns the vocabulary.
func (m *Unigram) Table() *vocab.Table { return m.Vocab }

// Table returns the vocabulary.
func (m *Ranks) Table() *vocab.Table { return m.Vocab }

// Table returns the vocabulary.
func (m *SentencePiece) Table() *vocab.Table { return m.Vocab }

// UnknownID returns the id of unknown text, -1 if a model has none.
func UnknownID(m Model) int {
	switch m := m.(type) {
	case *BPE:
		return int(m.Unk)
	case *WordPiece:
		return int(m.Unk)
	case *WordLevel:
		return int(m.Unk)
	case *Unigram:
		return m.Unk
	case *SentencePiece:
		return m.Unk
	}
	return -1
}

// Decoder is one of Steps, JoinBytes and JoinPieces.
type Decoder interface{ isDecoder() }

// Steps is a decoder of tokenizer.json. Without one, tokens are joined with spaces.
type Steps struct {
	Sequence decode.Sequence
	Any      bool
}

// JoinBytes joins the bytes of tokens, as tiktoken does.
type JoinBytes struct{}

// JoinPieces is SentencePiece's decoder.
type JoinPieces struct {
	Unknown     string // the text of an unknown piece
	StripsSpace bool   // drops a space at the beginning
	StripsAll   bool   // drops all spaces at the beginning
	Kinds       []PieceKind
}

func (Steps) isDecoder()      {}
func (JoinBytes) isDecoder()  {}
func (JoinPieces) isDecoder() {}

// Family returns one of "bytelevel-bpe", "sentencepiece-bpe", "bpe", "wordpiece", "unigram" and
// "wordlevel".
func (s *Spec) Family() string {
	switch m := s.Model.(type) {
	case *Ranks:
		return "bytelevel-bpe"
	case *WordPiece:
		return "wordpiece"
	case *WordLevel:
		return "wordlevel"
	case *Unigram:
		return "unigram"
	case *SentencePiece:
		if m.Unigram {
			return "unigram"
		}
		return "sentencepiece-bpe"
	case *BPE:
		return s.familyOfBPE(m)
	}
	return ""
}

// familyOfBPE derives the family of a BPE model from the other components; normalizers take
// precedence.
func (s *Spec) familyOfBPE(m *BPE) string {
	family := "bpe"
	if m.ByteFallback {
		family = "sentencepiece-bpe"
	}
	for _, c := range s.PreTokenizer {
		switch c.(type) {
		case pretokenize.ByteLevel:
			family = "bytelevel-bpe"
		case pretokenize.Metaspace:
			family = "sentencepiece-bpe"
		}
	}
	for _, c := range s.Normalizer {
		if _, ok := c.(normalize.ByteLevel); ok {
			family = "bytelevel-bpe"
		}
	}
	return family
}

// NewTokenizer returns the *tokenize.Tokenizer of a Spec whose tables stand already, for package builtin; mem
// counts what they took. Package tokenize sets it: exported there, it would be of no use to anybody else.
var NewTokenizer func(s *Spec, mem *Meter) (tokenizer any, err error)

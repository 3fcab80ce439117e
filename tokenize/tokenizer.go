package tokenize

import (
	"sync"

	"github.com/dsload/dsload/tokenize/internal/pipeline"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Tokenizer is a loaded tokenizer: immutable, safe for concurrent use.
type Tokenizer struct {
	name        string
	family      string
	fingerprint string
	fileName    string // the name of a copy of the file
	names       spec.Names
	warnings    []string
	truncation  int
	source      source
	pipeline    *pipeline.Pipeline
	tokens      *tokenSet
	around      spec.Around
	special     Special
	named       map[string]string // beside.named
	decoder     spec.Decoder
	encoders    sync.Pool                         // holds *Encoder, for Encode
	texts       sync.Pool                         // holds *[]byte, for Decode
	offsets     func() (*pipeline.Offsets, error) // made once
}

// newTokenizer returns the tokenizer that s describes.
func newTokenizer(s *spec.Spec, mem *spec.Meter) (*Tokenizer, error) {
	p, err := pipeline.New(s, pipeline.Options{Meter: mem})
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		name: s.Name, family: s.Family(), fingerprint: s.Fingerprint, fileName: s.FileName, names: s.Names,
		warnings: s.Warnings, truncation: s.Truncation, pipeline: p,
		tokens: newTokenSet(s), around: s.Around, special: Special{-1, -1, -1, -1, -1, -1, -1}, decoder: s.Decoder,
	}
	t.offsets = sync.OnceValues(t.newOffsets)
	t.source.patch, t.source.config = s.Patch, s.Config
	if len(s.Unlisted) > 0 {
		t.warnings = append(t.warnings, unlisted(s.Unlisted))
	}
	if _, ok := s.Model.(*spec.Ranks); ok {
		t.source.spec = s
	}
	t.findSpecial(s)
	return t, nil
}

// Name returns the tokenizer's name: its folder or file, or its built-in name.
func (t *Tokenizer) Name() string { return t.name }

// Family returns one of "bytelevel-bpe", "sentencepiece-bpe", "bpe", "wordpiece", "unigram",
// "wordlevel".
func (t *Tokenizer) Family() string { return t.family }

// Fingerprint returns the hex SHA-256 of what determines the ids: tokenizers with equal
// fingerprints give equal ids.
func (t *Tokenizer) Fingerprint() string { return t.fingerprint }

// Warnings lists the parts of the file that have no effect, such as unknown fields.
func (t *Tokenizer) Warnings() []string { return t.warnings }

// Prefix returns the ids that the post-processor puts before a single sequence. The caller must not
// change them.
func (t *Tokenizer) Prefix() []uint32 { return t.around.Prefix }

// Suffix returns the ids that the post-processor puts after a single sequence. The caller must not
// change them.
func (t *Tokenizer) Suffix() []uint32 { return t.around.Suffix }

// Special returns the ids of well-known special tokens.
func (t *Tokenizer) Special() Special { return t.special }

// VocabSize returns the largest id plus one, added tokens included.
func (t *Tokenizer) VocabSize() int { return t.tokens.numIDs }

// Token returns the token as the vocabulary writes it, and false for ids without a token.
func (t *Tokenizer) Token(id uint32) (string, bool) {
	if s, ok := t.tokens.addedR[id]; ok {
		return s, true
	}
	b, ok := t.tokens.Token(id)
	return string(b), ok
}

// ID returns the id of a token written as in the vocabulary, added tokens first.
func (t *Tokenizer) ID(token string) (uint32, bool) {
	if id, ok := t.tokens.added[token]; ok {
		return id, true
	}
	return t.tokens.ID([]byte(token))
}

// Widths returns the number of bytes that each id stands for in the texts of which Encoder.Verbatim is true, 0
// where it is not always the same or not known. It returns nil if there are no such texts.
func (t *Tokenizer) Widths() []uint8 { return t.pipeline.Widths(t.VocabSize()) }

// Encode returns the ids of a text. It adds no special tokens; those written in the text are
// recognized.
//
// It takes an Encoder from a pool. A program that encodes many texts keeps one Encoder for each
// goroutine instead, which allocates nothing, or calls EncodeBatch.
func (t *Tokenizer) Encode(text string) []uint32 { return t.encode(text, false) }

// EncodeWithSpecials is Encode with the special tokens that the tokenizer adds to a text, such as
// [CLS] and [SEP].
func (t *Tokenizer) EncodeWithSpecials(text string) []uint32 { return t.encode(text, true) }

func (t *Tokenizer) encode(text string, specials bool) []uint32 {
	enc, ok := t.encoders.Get().(*Encoder)
	if !ok {
		enc = t.NewEncoder(EncoderOptions{CacheBytes: pooledCacheBytes})
	}
	defer t.encoders.Put(enc)
	return enc.encode(text, specials)
}

// SafeCut returns the largest known n <= len(text) at which a document that begins with text can be
// cut: whatever follows, encoding text[:n] as a piece that is not the last and the rest as a piece
// that is not the first gives the ids of the whole. It returns 0 if it knows none. text must begin
// where a document does or at an earlier safe cut.
func (t *Tokenizer) SafeCut(text []byte) int { return t.pipeline.SafeCut(text) }

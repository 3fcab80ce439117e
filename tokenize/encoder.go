package tokenize

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/pipeline"
)

// pooledCacheBytes is the size of the caches of the encoders that Tokenizer.Encode keeps.
const pooledCacheBytes = 1 << 20

// DefaultCacheBytes is the default of EncoderOptions.CacheBytes.
const DefaultCacheBytes = 8 << 20

// EncoderOptions configures an Encoder. No field changes the ids.
type EncoderOptions struct {
	// CacheBytes is the size of the cache in bytes (default 8 MiB). Negative: the smallest that
	// works.
	CacheBytes int
	// MaxNormalized bounds the bytes that a normalizer may make of one text, so that a tokenizer
	// file that multiplies text cannot use up memory. A text may always grow to three times its
	// length. A text beyond the bound gets no ids, and Encoder.Err says so. 0 means no bound.
	MaxNormalized int
}

// minExpansion is how many times its length a text may always grow to: a space that becomes
// U+2581 takes three bytes.
const minExpansion = 3

func (o EncoderOptions) withDefaults() EncoderOptions {
	o.CacheBytes = cmp.Or(o.CacheBytes, DefaultCacheBytes)
	if o.CacheBytes < 0 {
		o.CacheBytes = 1
	}
	return o
}

// ErrExpansion reports that a normalizer makes a text longer than EncoderOptions.MaxNormalized
// allows.
var ErrExpansion = errors.New("normalized text too long")

// Encoder is one goroutine's handle on a Tokenizer, with a cache of its own.
type Encoder struct {
	t    *Tokenizer
	enc  *pipeline.Encoder
	max  int
	err  error
	text []byte // scratch
	ids  []uint32
	// plain texts of AppendEach
	plain [][]byte
}

// NewEncoder returns an Encoder. It takes little time: see Warm.
func (t *Tokenizer) NewEncoder(o EncoderOptions) *Encoder {
	o = o.withDefaults()
	return &Encoder{t: t, enc: t.pipeline.NewEncoder(o.CacheBytes), max: o.MaxNormalized}
}

// Warm puts the vocabulary into the cache. An Encoder does that by itself once it has met so much
// text that the milliseconds are worth it; a benchmark may want to spend them before it begins.
func (e *Encoder) Warm() { e.enc.Warm() }

// AppendTokens appends the ids of a whole document to dst. It adds no special tokens; those written
// in the text are recognized, as Hugging Face does with add_special_tokens=False.
func (e *Encoder) AppendTokens(dst []uint32, text []byte) []uint32 {
	return e.AppendPiece(dst, text, Piece{First: true, Last: true})
}

// Piece says where in its document a piece lies. A whole document is both first and last.
type Piece struct{ First, Last bool }

// AppendPiece appends the ids of one piece of a document that was cut where Tokenizer.SafeCut says.
func (e *Encoder) AppendPiece(dst []uint32, text []byte, p Piece) []uint32 {
	limit := 0
	if e.max > 0 {
		limit = max(e.max, minExpansion*len(text))
	}
	from := len(dst)
	dst, ok := e.enc.AppendPiece(dst, text, p.First, p.Last, limit)
	if !ok {
		e.err = fmt.Errorf("%w: the normalizer turns %[3]d bytes into more than %[2]d", ErrExpansion, limit, len(text))
		return dst[:from]
	}
	e.err = nil
	return dst
}

// A Text is a piece of a document.
type Text struct {
	Bytes []byte
	Piece
}

// AppendEach appends the ids of several texts, each as AppendPiece does, which takes less time where they are short. It
// calls done after each with its number and all ids so far; Err and Verbatim are about that text then. What done returns
// is where the ids of the next one go.
func (e *Encoder) AppendEach(dst []uint32, texts []Text, done func(i int, dst []uint32) []uint32) []uint32 {
	for i := 0; i < len(texts); {
		e.plain = e.plain[:0]
		for _, t := range texts[i:] {
			if !e.enc.Plain(t.Bytes) {
				break
			}
			e.plain = append(e.plain, t.Bytes)
		}
		if len(e.plain) > 0 {
			e.err = nil
			dst = e.enc.AppendPlain(dst, e.plain, func(k int, dst []uint32) []uint32 { return done(i+k, dst) })
			i += len(e.plain)
			clear(e.plain)
			continue
		}
		dst = done(i, e.AppendPiece(dst, texts[i].Bytes, texts[i].Piece))
		i++
	}
	return dst
}

// Err returns why the last text got no ids: an error that wraps ErrExpansion. It is always nil if
// MaxNormalized is 0.
func (e *Encoder) Err() error { return e.err }

// Verbatim reports whether the last text is what its ids stand for, one after another: none of it was changed
// or left out, and nothing was inserted. Tokenizer.Widths returns how long each is. Only tokenizers of the family
// "bytelevel-bpe" have such texts.
func (e *Encoder) Verbatim() bool { return e.enc.Verbatim() }

// keptScratch bounds the scratch buffers that an Encoder keeps between texts, in bytes of text.
const keptScratch = 1 << 20

// encode returns the ids of a text in a new slice, or nil if Encoder.Err says why.
func (e *Encoder) encode(text string, specials bool) []uint32 {
	e.text = append(e.text[:0], text...)
	e.ids = e.ids[:0]
	if specials {
		e.ids = append(e.ids, e.t.Prefix()...)
	}
	e.ids = e.AppendTokens(e.ids, e.text)
	if specials {
		e.ids = append(e.ids, e.t.Suffix()...)
	}
	var ids []uint32
	if e.err == nil {
		ids = append(make([]uint32, 0, len(e.ids)), e.ids...)
	}
	if cap(e.text) > keptScratch {
		e.text, e.ids = nil, nil
	}
	return ids
}

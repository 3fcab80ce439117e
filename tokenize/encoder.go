package tokenize

// DefaultCacheBytes is the size of an Encoder's cache where EncoderOptions says nothing.
const DefaultCacheBytes = 8 << 20

// EncoderOptions configures an Encoder. No field changes the ids.
type EncoderOptions struct {
	// CacheBytes is the size of the cache in bytes (default 8 MiB). Negative: the smallest that works.
	CacheBytes int
}

func (o EncoderOptions) withDefaults() EncoderOptions {
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.CacheBytes < 0 {
		o.CacheBytes = 1
	}
	return o
}

// Encoder is one goroutine's handle on a Tokenizer, with a cache of its own.
type Encoder struct {
	enc engineEncoder
}

// NewEncoder returns an Encoder with an empty cache.
func (t *Tokenizer) NewEncoder(o EncoderOptions) *Encoder {
	return &Encoder{enc: t.engine.newEncoder(o.withDefaults().CacheBytes)}
}

// AppendTokens appends the ids of a whole document to dst. No special tokens are put around it; special tokens written
// in the text are recognized, as Hugging Face does with add_special_tokens=False.
func (e *Encoder) AppendTokens(dst []uint32, text []byte) []uint32 {
	return e.enc.appendPiece(dst, text, true, true)
}

// AppendPiece appends the ids of one piece of a document that was cut at positions given by Tokenizer.SafeCut. first
// and last say whether the piece begins or ends the document; a whole document is both.
func (e *Encoder) AppendPiece(dst []uint32, text []byte, first, last bool) []uint32 {
	return e.enc.appendPiece(dst, text, first, last)
}

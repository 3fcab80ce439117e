package pipeline

import (
	"bytes"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/engine/plain"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/vocab"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// Segments is an engine that encodes whole segments: pre-tokenizer and model (and sometimes the
// normalizer) in one.
type Segments interface {
	NewEncoder(cacheBytes int) SegmentEncoder
	SafeCut(text []byte) int
	ResidentBytes() int64
	EncoderBytes(cacheBytes int) int64
}

// SegmentEncoder is one goroutine's handle on Segments. first and last report whether this text begins
// and ends its segment.
type SegmentEncoder interface {
	Append(dst []uint32, segment []byte, first, last bool) []uint32
}

// Config is what a pipeline consists of. Either Segments or Model is set. With a PreTokenizer,
// Segments encodes one piece at a time.
type Config struct {
	// Kind names the engine for users: "byte-level BPE, split gpt2", "general".
	Kind string

	// SearchBytes is the memory that the search for a regular expression may take.
	SearchBytes int64

	Added           *added.Matcher // tokens searched for in the text as it is
	Normalizer      normalize.Sequence
	AddedNormalized *added.Matcher // tokens searched for in normalized text
	PreTokenizer    pretokenize.Sequence
	Model           plain.Model
	Segments        Segments

	// FirstOnly passes first to Segments only at the beginning of the document.
	FirstOnly bool

	// PrefixSpace puts a space before each segment that does not begin with one: ByteLevel's
	// add_prefix_space.
	PrefixSpace bool

	// RawBytes lets ill-formed UTF-8 reach the model as it is.
	RawBytes bool

	// Bytes holds what each token is in a segment, if the tokens that Segments makes of one are all of it.
	Bytes *vocab.Table

	// CutAtSpaces means that text may be cut before a space between an ASCII letter or digit and an
	// ASCII letter: the normalizer does not look across it, and the pre-tokenizer always cuts
	// there.
	CutAtSpaces bool
}

// Pipeline evaluates components one after the other. It is immutable.
type Pipeline struct{ Config }

// ResidentBytes estimates the memory of the tables in bytes.
func (p *Pipeline) ResidentBytes() int64 {
	n := p.Added.Bytes() + p.AddedNormalized.Bytes()
	if p.Segments != nil {
		return n + p.Segments.ResidentBytes()
	}
	return n + p.Model.ResidentBytes()
}

// EncoderBytes returns the memory of an encoder with a cache of size bytes whose texts are at most
// limit bytes long when normalized.
func (p *Pipeline) EncoderBytes(size, limit int) int64 {
	n := cacheBytes(size) + 1<<20
	if p.Segments != nil {
		n = p.Segments.EncoderBytes(size)
	}
	n += p.SearchBytes
	if len(p.Normalizer) > 0 {
		n += 2 * int64(limit) // a step reads one buffer and writes another
	}
	return n
}

// Encoder is one goroutine's handle on a Pipeline.
type Encoder struct {
	p           *Pipeline
	seg         SegmentEncoder
	cache       *cache
	matches     []added.Match
	matchesNorm []added.Match
	norm        normalize.Scratch
	pre         pretokenize.Scratch
	model       plain.Scratch
	valid       []byte
	spaced      []byte
	edges       normalize.Edges
	limit, made int  // bytes that the normalizer may make and has made of this text; limit 0 is none
	verbatim    bool // see Verbatim
}

// NewEncoder returns an encoder with a cache of size bytes.
func (p *Pipeline) NewEncoder(size int) *Encoder {
	e := &Encoder{p: p}
	if p.Segments != nil {
		e.seg = p.Segments.NewEncoder(size)
	} else {
		e.cache = newCache(size)
	}
	return e
}

// Warm fills the cache as the engine does by itself once it has seen some text.
func (e *Encoder) Warm() {
	if w, ok := e.seg.(interface{ Warm() }); ok {
		w.Warm()
	}
}

// AppendPiece appends the ids of a document, or of a piece of one that was cut where SafeCut says.
// ok is false if the normalizer makes more than limit bytes of the text; the ids are then
// incomplete. 0 means no limit.
func (e *Encoder) AppendPiece(dst []uint32, text []byte, first, last bool, limit int) (ids []uint32, ok bool) {
	e.limit, e.made, e.edges.Over, e.verbatim = limit, 0, false, e.p.Bytes != nil
	dst = e.piece(dst, text, first, last)
	return dst, !e.edges.Over
}

func (e *Encoder) piece(dst []uint32, text []byte, first, last bool) []uint32 {
	if !e.p.RawBytes && !wellformed.Valid(text) {
		e.valid, _ = wellformed.Append(e.valid[:0], text)
		text, e.verbatim = e.valid, false
	}
	if e.p.Added == nil {
		return e.segment(dst, text, first, last, first)
	}
	e.matches = e.p.Added.Append(e.matches[:0], text)
	e.verbatim = e.verbatim && (len(e.matches) == 0 || !e.p.Added.Strips())
	done := 0
	for _, m := range e.matches {
		if done < m.Start {
			dst = e.segment(dst, text[done:m.Start], done > 0 || first, true, done == 0 && first)
		}
		dst = append(dst, m.ID)
		done = m.End
	}
	if done < len(text) {
		dst = e.segment(dst, text[done:], done > 0 || first, last, done == 0 && first)
	}
	return dst
}

// segment encodes the text between added tokens. document reports whether it begins the document.
func (e *Encoder) segment(dst []uint32, text []byte, first, last, document bool) []uint32 {
	if len(text) == 0 || e.edges.Over {
		return dst
	}
	if e.asIs() {
		return e.seg.Append(dst, text, first && (document || !e.p.FirstOnly), last)
	}
	edges := &e.edges
	*edges = normalize.Edges{First: first, Last: last}
	if e.limit > 0 {
		edges.Limit = max(e.limit-e.made, 1)
	}
	if document {
		_, edges.Zero = utf8.DecodeRune(text)
	}
	given := text
	text = e.p.Normalizer.Apply(&e.norm, text, edges)
	e.verbatim = e.verbatim && bytes.Equal(text, given)
	e.made += len(text)
	if edges.Over {
		return dst
	}
	if e.p.AddedNormalized == nil {
		return e.pieces(dst, text, first, last, edges.Zero)
	}
	e.matchesNorm = e.p.AddedNormalized.Append(e.matchesNorm[:0], text)
	e.verbatim = e.verbatim && (len(e.matchesNorm) == 0 || !e.p.AddedNormalized.Strips())
	done := 0
	for _, m := range e.matchesNorm {
		if done < m.Start {
			dst = e.pieces(dst, text[done:m.Start], done > 0 || first, true, edges.Zero-done)
		}
		dst = append(dst, m.ID)
		done = m.End
	}
	if done < len(text) {
		dst = e.pieces(dst, text[done:], done > 0 || first, last, edges.Zero-done)
	}
	return dst
}

// pieces encodes normalized text. zero is the number of its leading bytes that come from the
// document's first character.
func (e *Encoder) pieces(dst []uint32, text []byte, first, last bool, zero int) []uint32 {
	if len(text) == 0 {
		return dst
	}
	if e.seg != nil && len(e.p.PreTokenizer) == 0 {
		if e.p.PrefixSpace && first && text[0] != ' ' {
			e.spaced = append(append(e.spaced[:0], ' '), text...)
			text, e.verbatim = e.spaced, false
		}
		return e.seg.Append(dst, text, first && (zero > 0 || !e.p.FirstOnly), last)
	}
	cut := e.pre.Apply(e.p.PreTokenizer, text, max(0, zero))
	for _, s := range cut.Spans {
		piece := cut.Text[s.Start:s.End]
		if e.seg != nil {
			dst = e.seg.Append(dst, piece, true, true)
			continue
		}
		if len(piece) > maxCachedKey {
			dst = e.p.Model.Append(dst, piece, &e.model)
			continue
		}
		ids, h, at, ok := e.cache.get(piece)
		if ok {
			dst = append(dst, ids...)
			continue
		}
		from := len(dst)
		dst = e.p.Model.Append(dst, piece, &e.model)
		e.cache.put(piece, h, at, dst[from:])
	}
	return dst
}

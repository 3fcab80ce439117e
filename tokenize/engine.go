package tokenize

import (
	"github.com/dsload/dsload/tokenize/internal/bytebpe"
	"github.com/dsload/dsload/tokenize/internal/general"
	"github.com/dsload/dsload/tokenize/internal/spbpe"
	"github.com/dsload/dsload/tokenize/internal/unigram"
	"github.com/dsload/dsload/tokenize/internal/wordpiece"
)

// pipeline is the engine of every tokenizer: added tokens and what comes between them.
type pipeline struct {
	*general.Pipeline
	name string
}

func (p pipeline) newEncoder(cacheBytes int) engineEncoder {
	return pieceEncoder{p.NewEncoder(cacheBytes)}
}
func (p pipeline) safeCut(text []byte) int           { return p.SafeCut(text) }
func (p pipeline) residentBytes() int64              { return p.ResidentBytes() }
func (p pipeline) encoderBytes(cacheBytes int) int64 { return p.EncoderBytes(cacheBytes) }
func (p pipeline) kind() string                      { return p.name }

type pieceEncoder struct{ e *general.Encoder }

func (p pieceEncoder) appendPiece(dst []uint32, text []byte, first, last bool) []uint32 {
	return p.e.AppendPiece(dst, text, first, last)
}

// The engines, as the pipeline plugs them in.

type byteBPE struct{ *bytebpe.Model }

func (m byteBPE) NewEncoder(n int) general.SegmentEncoder { return m.Model.NewEncoder(n) }

type spBPE struct{ *spbpe.Model }

func (m spBPE) NewEncoder(n int) general.SegmentEncoder { return m.Model.NewEncoder(n) }

type unigramSegments struct{ *unigram.Model }

func (m unigramSegments) NewEncoder(n int) general.SegmentEncoder { return m.Model.NewEncoder(n) }

type wordPieces struct{ *wordpiece.Model }

func (m wordPieces) NewEncoder(n int) general.SegmentEncoder { return m.Model.NewEncoder(n) }

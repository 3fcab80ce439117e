package pipeline

import "github.com/dsload/dsload/tokenize/wellformed"

// eachEncoder is a SegmentEncoder to which pieces of a segment are as good as whole ones.
type eachEncoder interface {
	AppendEach(dst []uint32, texts [][]byte, done func(i int, dst []uint32) []uint32) []uint32
}

// asIs reports whether segments reach the engine as they are.
func (e *Encoder) asIs() bool {
	return e.seg != nil && len(e.p.Normalizer) == 0 && e.p.AddedNormalized == nil && !e.p.PrefixSpace &&
		len(e.p.PreTokenizer) == 0
}

// Plain reports whether AppendPlain takes a text: it is one segment, of an engine that takes several at once.
func (e *Encoder) Plain(text []byte) bool {
	if _, ok := e.seg.(eachEncoder); !ok || !e.asIs() || !e.p.RawBytes && !wellformed.Valid(text) {
		return false
	}
	if e.p.Added != nil {
		e.matches = e.p.Added.Append(e.matches[:0], text)
		return len(e.matches) == 0
	}
	return true
}

// AppendPlain is AppendPiece for several texts that are Plain. It calls done after each with its number and all ids so
// far; what done returns is where the next ones go.
func (e *Encoder) AppendPlain(dst []uint32, texts [][]byte, done func(i int, dst []uint32) []uint32) []uint32 {
	e.verbatim = e.p.Bytes != nil
	return e.seg.(eachEncoder).AppendEach(dst, texts, done)
}

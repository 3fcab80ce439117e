package chat

import (
	"strings"

	"github.com/dsload/dsload/tokenize"
)

// Pieces are what the ids of a tokenizer usually stand for in a text, to find ids in it without decoding
// them. It is immutable.
type Pieces struct {
	t        *tokenize.Tokenizer
	bytewise bool
	traced   bool
	data     []byte
	ends     []uint32 // of each id's bytes in data; empty where ids are traced
}

// NewPieces returns the pieces of a tokenizer: none where a text is not the concatenation of its tokens, or
// where no token needs to be found, as every one is trained on.
func (r *Renderer) NewPieces(t *tokenize.Tokenizer) *Pieces {
	p := &Pieces{t: t, bytewise: t.Family() == "bytelevel-bpe", traced: traced(t)}
	if p.traced || r.opts.TrainOn == TrainAll {
		return p
	}
	p.ends = make([]uint32, t.VocabSize())
	for id := range p.ends {
		p.data = p.append(p.data, uint32(id))
		p.ends[id] = uint32(len(p.data))
	}
	return p
}

func (p *Pieces) append(dst []byte, id uint32) []byte {
	token, _ := p.t.Token(id)
	if !p.bytewise {
		return append(dst, strings.ReplaceAll(token, metaspace, " ")...)
	}
	if out := appendAlphabet(dst, token); len(out) > len(dst) {
		return out
	}
	return append(dst, token...) // of ranks, or added: it stands for itself
}

// Bytes returns the memory of the pieces.
func (p *Pieces) Bytes() int64 { return int64(cap(p.data) + 4*cap(p.ends)) }

// of returns the bytes of an id, none where they are not known.
func (p *Pieces) of(id uint32) []byte {
	if int(id) >= len(p.ends) {
		return nil
	}
	start := uint32(0)
	if id > 0 {
		start = p.ends[id-1]
	}
	return p.data[start:p.ends[id]]
}

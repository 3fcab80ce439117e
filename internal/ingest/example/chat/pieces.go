package chat

import (
	"encoding/binary"
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
	// shorts holds the bytes of each id in one word, the first in the lowest, and their number in the highest
	// byte; 0 for an id that does not fit.
	shorts []uint64
}

// maxShort is how many bytes fit in a word beside their number.
const maxShort = 7

// NewPieces returns the pieces of a tokenizer: none where a text is not the concatenation of its tokens, or
// where no token needs to be found, as every one is trained on.
func (r *Renderer) NewPieces(t *tokenize.Tokenizer) *Pieces {
	p := &Pieces{t: t, bytewise: t.Family() == "bytelevel-bpe", traced: traced(t)}
	if p.traced || r.opts.TrainOn == TrainAll {
		return p
	}
	p.ends, p.shorts = make([]uint32, t.VocabSize()), make([]uint64, t.VocabSize())
	for id := range p.ends {
		p.data = p.append(p.data, uint32(id))
		p.ends[id] = uint32(len(p.data))
		if piece := p.of(uint32(id)); len(piece) <= maxShort {
			var word [8]byte
			copy(word[:], piece)
			word[maxShort] = byte(len(piece))
			p.shorts[id] = binary.LittleEndian.Uint64(word[:])
		}
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
func (p *Pieces) Bytes() int64 { return int64(cap(p.data) + 4*cap(p.ends) + 8*cap(p.shorts)) }

// short returns the length of an id's bytes if they are few and the text begins with them, else 0: then it
// may still begin with the id.
func (p *Pieces) short(id uint32, text []byte) int {
	if int(id) >= len(p.shorts) || len(text) < 8 {
		return 0
	}
	word := p.shorts[id]
	n := int(word >> (8 * maxShort))
	if (word^binary.LittleEndian.Uint64(text))<<(64-8*n) != 0 {
		return 0
	}
	return n
}

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

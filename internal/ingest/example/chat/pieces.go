package chat

import (
	"bytes"
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
	// words holds the bytes of each id, the first in the lowest, and their number in the highest byte. Of an id
	// with more than maxShort bytes it holds where they begin in long, and above that their number, and
	// isLong. It is empty where ids are traced.
	words []uint64
	long  []byte
	// widths holds how long ids are in texts that are what their ids stand for.
	widths []uint8
}

const (
	maxShort  = 7
	startBits = 32
	maxLong   = 1 << (8*maxShort - startBits)
	isLong    = 0xff << (8 * maxShort)
)

// NewPieces returns the pieces of a tokenizer: none where a text is not the concatenation of its tokens, or
// where no token needs to be found, as every one is trained on.
func (r *Renderer) NewPieces(t *tokenize.Tokenizer) *Pieces {
	p := &Pieces{t: t, bytewise: t.Family() == "bytelevel-bpe", traced: traced(t)}
	if p.traced || r.opts.TrainOn == TrainAll {
		return p
	}
	p.widths = t.Widths()
	p.words = make([]uint64, t.VocabSize())
	for id := range p.words {
		start := len(p.long)
		p.long = p.append(p.long, uint32(id))
		if n := len(p.long) - start; n <= maxShort {
			var word [8]byte
			copy(word[:], p.long[start:])
			word[maxShort] = byte(n)
			p.words[id], p.long = binary.LittleEndian.Uint64(word[:]), p.long[:start]
		} else if n < maxLong {
			p.words[id] = isLong | uint64(n)<<startBits | uint64(start)
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
	return append(dst, token...) // a token of ranks, or an added one, stands for itself
}

// Bytes returns the memory of the pieces.
func (p *Pieces) Bytes() int64 { return int64(cap(p.long) + 8*cap(p.words) + cap(p.widths)) }

// match returns how many bytes an id has if the text begins with them; 0 if it does not, or if they are not
// known.
func (p *Pieces) match(id uint32, text []byte) int {
	if int(id) >= len(p.words) {
		return 0
	}
	word := p.words[id]
	n := int(word >> (8 * maxShort))
	if n <= maxShort && len(text) >= 8 {
		if (word^binary.LittleEndian.Uint64(text))<<(64-8*n) != 0 {
			return 0
		}
		return n
	}
	return p.matchRest(word, text)
}

// matchRest is match for a long id, or a short text.
func (p *Pieces) matchRest(word uint64, text []byte) int {
	var short [8]byte
	binary.LittleEndian.PutUint64(short[:], word)
	piece := short[:]
	if word >= isLong {
		start, n := int(uint32(word)), int(word&^isLong>>startBits)
		piece = p.long[start : start+n]
	} else {
		piece = piece[:short[maxShort]]
	}
	if !bytes.HasPrefix(text, piece) {
		return 0
	}
	return len(piece)
}

package plain

import (
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/bytetrie"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Unigram finds the segmentation with the highest sum of scores, as Hugging Face's model does: it
// takes candidates in order of their beginning, then length, and only a strictly better one
// replaces another.
type Unigram struct {
	trie         *bytetrie.Trie
	scores       []float64
	unk          int // -1: unknown text gives nothing
	unkScore     float64
	byteFallback bool
	byteIDs      [256]int32
}

// unkPenalty is how much worse an unknown character scores than the worst piece.
const unkPenalty = 10

// NewUnigram returns the model.
func NewUnigram(c *spec.Unigram) (*Unigram, error) {
	m := &Unigram{scores: c.Scores, unk: c.Unk, byteFallback: c.ByteFallback, byteIDs: c.Vocab.ByteIDs()}
	scores := c.Scores
	keys, ids := make([][]byte, 0, len(scores)), make([]uint32, 0, len(scores))
	lowest := 0.0
	for id, s := range scores {
		if id == 0 || s < lowest {
			lowest = s
		}
		t, _ := c.Vocab.Token(uint32(id))
		keys, ids = append(keys, t), append(ids, uint32(id))
	}
	m.unkScore = lowest - unkPenalty
	var err error
	m.trie, err = bytetrie.New(keys, ids)
	return m, err
}

// ResidentBytes implements Model.
func (m *Unigram) ResidentBytes() int64 { return m.trie.Bytes() + int64(len(m.scores))*8 }

// best is the best path that ends at an offset.
type best struct {
	score float64
	start int32 // -1: none
	id    int64 // -1: an unknown character
}

// Append implements Model.
func (m *Unigram) Append(dst []uint32, piece []byte, s *Scratch) []uint32 {
	nodes := slices.Grow(s.best[:0], len(piece)+1)[:len(piece)+1]
	s.best = nodes
	for i := range nodes {
		nodes[i] = best{start: -1}
	}
	for i := 0; i < len(piece); {
		_, size := utf8.DecodeRune(piece[i:])
		single := false
		node, ok := m.trie.Root(), true
		for end := i; end < len(piece); {
			if node, ok = m.trie.Step(node, piece[end]); !ok {
				break
			}
			end++
			if id, ok := node.Value(); ok {
				nodes[end].offer(nodes[i].score+m.scores[id], i, int64(id))
				single = single || end-i == size
			}
		}
		if !single {
			nodes[i+size].offer(nodes[i].score+m.unkScore, i, int64(m.unk))
		}
		i += size
	}
	from, noted := len(dst), len(s.Extents)
	for end := len(piece); end > 0; {
		n := nodes[end]
		if n.id != int64(m.unk) {
			dst = append(dst, uint32(n.id))
			s.note(int(n.start), end)
			end = int(n.start)
			continue
		}
		start := int(n.start)
		for start > 0 && nodes[start].id == int64(m.unk) {
			start = int(nodes[start].start)
		}
		had := len(dst)
		dst = m.unknown(dst, piece[start:end])
		for range len(dst) - had {
			s.note(start, end)
		}
		end = start
	}
	slices.Reverse(dst[from:])
	slices.Reverse(s.Extents[noted:])
	if cap(s.best) > maxSymbolsKept {
		s.best = nil
	}
	return dst
}

func (b *best) offer(score float64, start int, id int64) {
	if b.start < 0 || score > b.score {
		*b = best{score, int32(start), id}
	}
}

// unknown appends, in reverse, the ids of a run of unknown characters: the token they happen to be,
// bytes, or unk.
func (m *Unigram) unknown(dst []uint32, text []byte) []uint32 {
	if id, ok := m.trie.Find(text); ok {
		return append(dst, id)
	}
	if m.byteFallback {
		from := len(dst)
		for i := len(text) - 1; i >= 0 && m.byteIDs[text[i]] >= 0; i-- {
			dst = append(dst, uint32(m.byteIDs[text[i]]))
		}
		if len(dst)-from == len(text) {
			return dst
		}
		dst = dst[:from]
	}
	return appendUnk(dst, int64(m.unk))
}

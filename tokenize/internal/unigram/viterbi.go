package unigram

import (
	"slices"
	"unicode/utf8"
)

// node is the best path that ends at some offset.
type node struct {
	score float64
	start uint32 // where its last piece begins, noStart where no path ends
	id    uint32
}

const (
	noStart = ^uint32(0)
	// unkNode marks an unknown character where the model has no unknown piece; with one, its id is used.
	unkNode = ^uint32(0)
)

// AppendWord appends the ids of one normalized pre-token: the model alone, nothing added. Unknown text in a model without an unknown piece
// gives no ids.
func (e *Encoder) AppendWord(dst []uint32, word []byte) []uint32 {
	if len(word) == 0 {
		return dst
	}
	e.search(word)
	nodes := e.nodes
	unk := e.m.unkID()
	// Backwards: ids come out in reverse, and neighbouring unknown nodes as one.
	begin := len(dst)
	for end := uint32(len(word)); end > 0; {
		nd := nodes[end]
		if nd.id != unk {
			dst = append(dst, nd.id)
			end = nd.start
			continue
		}
		start := nd.start
		for start > 0 && nodes[start].id == unk {
			start = nodes[start].start
		}
		dst = e.m.appendUnknown(dst, word[start:end])
		end = start
	}
	slices.Reverse(dst[begin:])
	if cap(e.nodes) > 2*keepScratch {
		e.nodes = nil
	}
	return dst
}

func (m *Model) unkID() uint32 {
	if m.cfg.UnkID < 0 {
		return unkNode
	}
	return uint32(m.cfg.UnkID)
}

// appendUnknown appends, in reverse, what fused unknown text becomes: the piece that it happens to be, its bytes, or the unknown piece.
func (m *Model) appendUnknown(dst []uint32, text []byte) []uint32 {
	if id, ok := m.trie.Find(text); ok {
		return append(dst, id)
	}
	if m.cfg.ByteFallback {
		before := len(dst)
		for i := len(text) - 1; i >= 0; i-- {
			id := m.cfg.ByteIDs[text[i]]
			if id < 0 {
				dst = dst[:before]
				break
			}
			dst = append(dst, uint32(id))
		}
		if len(dst) > before {
			return dst
		}
	}
	if m.cfg.UnkID >= 0 {
		dst = append(dst, uint32(m.cfg.UnkID))
	}
	return dst
}

// search fills e.nodes for word.
func (e *Encoder) search(word []byte) {
	m := e.m
	if cap(e.nodes) <= len(word) {
		e.nodes = make([]node, len(word)+1, max(2*len(word), keepScratch/2))
	}
	nodes := e.nodes[:len(word)+1]
	e.nodes = nodes
	for i := range nodes {
		nodes[i].start = noStart
	}
	nodes[0].score = 0
	scores := m.cfg.Scores
	trie := m.trie
	root := trie.Root()
	unk := m.unkID()
	for start := 0; start < len(word); {
		size := 1
		if word[start] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(word[start:])
		}
		ends := nodes[start+1:] // ends[i] is behind rest[i]
		rest := word[start:]
		rest = rest[:len(ends)]
		base := nodes[start].score
		single := false
		n := root
		for i, b := range rest {
			var ok bool
			if n, ok = trie.Step(n, b); !ok {
				break
			}
			id, ok := n.Value()
			if !ok {
				continue
			}
			score := scores[id] + base
			if t := &ends[i]; t.start == noStart {
				*t = node{score, uint32(start), id}
			} else {
				if near(score, t.score) {
					e.close = true
				}
				if score > t.score {
					*t = node{score, uint32(start), id}
				}
			}
			if i+1 == size {
				single = true
			}
		}
		if !single {
			score := m.unkScore + base
			if t := &ends[size-1]; t.start == noStart || score > t.score {
				e.close = e.close || t.start != noStart && near(score, t.score)
				*t = node{score, uint32(start), unk}
			} else if near(score, t.score) {
				e.close = true
			}
		}
		start += size
	}
}

// Package plain implements the models of tokenizers as they are defined. It is exact for every
// setting and takes O(n log n) time for a piece of n bytes, but it is slower than the engines, each
// of which serves one combination of settings.
package plain

import (
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/minheap"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Model encodes pieces. It is immutable.
type Model interface {
	// Append appends the ids of a piece, which is not empty.
	Append(dst []uint32, piece []byte, s *Scratch) []uint32
	ResidentBytes() int64
}

// Scratch is one goroutine's buffers for models.
type Scratch struct {
	symbols []symbol
	heap    []uint64
	text    []byte
	best    []best
	spans   []span

	// KeepExtents makes models record the extent in the piece of each id they append.
	KeepExtents bool
	Extents     []Extent
}

// Extent is where a token lies in its piece, in bytes.
type Extent struct{ Start, End int }

// note records a token's extent if KeepExtents is set.
func (s *Scratch) note(start, end int) {
	if s.KeepExtents {
		s.Extents = append(s.Extents, Extent{start, end})
	}
}

// BPE is byte pair encoding over characters, merging the lowest (rank, position) first.
type BPE struct {
	cfg     spec.BPE // without its merges
	results []uint32 // the id that each merge makes, by rank
	pairs   pairTable
	byteIDs [256]int32
}

type symbol struct {
	id         uint32
	prev, next int32
	size       int32 // bytes of the piece
	dead       bool
}

// NewBPE returns the model. Of equal pairs the last counts.
func NewBPE(c *spec.BPE) *BPE {
	m := &BPE{cfg: *c, pairs: pairTable{make([]pairSlot, 1<<bits.Len(uint(2*len(c.Merges))))},
		results: make([]uint32, len(c.Merges)),
		byteIDs: c.Vocab.ByteIDs()}
	for rank, g := range c.Merges {
		m.pairs.set(g.Left, g.Right, uint32(rank))
		m.results[rank] = g.Result
	}
	m.cfg.Merges = nil
	return m
}

// ResidentBytes returns the memory of the merges.
func (m *BPE) ResidentBytes() int64 { return int64(len(m.pairs.slots))*16 + int64(len(m.results))*4 }

// Append implements Model.
func (m *BPE) Append(dst []uint32, piece []byte, s *Scratch) []uint32 {
	if m.cfg.IgnoreMerges {
		if id, ok := m.cfg.Vocab.ID(piece); ok {
			s.note(0, len(piece))
			return append(dst, id)
		}
	}
	m.split(piece, s)
	m.merge(s)
	at := 0
	for i := range s.symbols {
		if sym := &s.symbols[i]; !sym.dead {
			dst = append(dst, sym.id)
			s.note(at, at+int(sym.size))
			at += int(sym.size)
		}
	}
	if cap(s.symbols) > maxSymbolsKept {
		s.symbols, s.heap = nil, nil
	}
	return dst
}

// maxSymbolsKept bounds the scratch buffers that are kept after a long piece.
const maxSymbolsKept = 1 << 16

// split sets the initial symbols: one for each character, or for each of its bytes, or the unknown
// token. As in the original, unknown characters that wait to be fused come after the byte tokens
// that follow them.
func (m *BPE) split(piece []byte, s *Scratch) {
	s.symbols = s.symbols[:0]
	add := func(id uint32, size int) {
		n := int32(len(s.symbols))
		s.symbols = append(s.symbols, symbol{id: id, prev: n - 1, next: n + 1, size: int32(size)})
	}
	unknown := 0 // bytes of unknown characters that wait
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRune(piece[i:])
		char := piece[i : i+n]
		if len(m.cfg.Prefix)+len(m.cfg.Suffix) > 0 {
			s.text = s.text[:0]
			if i > 0 {
				s.text = append(s.text, m.cfg.Prefix...)
			}
			s.text = append(s.text, char...)
			if i+n == len(piece) {
				s.text = append(s.text, m.cfg.Suffix...)
			}
			char = s.text
		}
		i += n
		if id, ok := m.cfg.Vocab.ID(char); ok {
			if unknown > 0 {
				add(uint32(m.cfg.Unk), unknown)
				unknown = 0
			}
			add(id, n)
			continue
		}
		if m.cfg.ByteFallback && m.hasBytes(char) {
			for _, b := range char {
				add(uint32(m.byteIDs[b]), 1)
			}
			continue
		}
		if m.cfg.Unk >= 0 {
			if unknown > 0 && !m.cfg.FuseUnk {
				add(uint32(m.cfg.Unk), unknown)
				unknown = 0
			}
			unknown += n
		}
	}
	if unknown > 0 {
		add(uint32(m.cfg.Unk), unknown)
	}
	if n := len(s.symbols); n > 0 {
		s.symbols[n-1].next = -1
	}
}

func (m *BPE) hasBytes(char []byte) bool {
	return !slices.ContainsFunc(char, func(b byte) bool { return m.byteIDs[b] < 0 })
}

// merge joins pairs, lowest rank first, leftmost among equals.
func (m *BPE) merge(s *Scratch) {
	sym := s.symbols
	s.heap = s.heap[:0]
	for i := range len(sym) - 1 {
		if rank, ok := m.pairs.get(sym[i].id, sym[i+1].id); ok {
			s.heap = append(s.heap, uint64(rank)<<32|uint64(i))
		}
	}
	minheap.Init(s.heap)
	for len(s.heap) > 0 {
		var top uint64
		top, s.heap = minheap.Pop(s.heap)
		pos, want := int32(uint32(top)), m.results[top>>32]
		left := &sym[pos]
		if left.dead || left.next < 0 {
			continue
		}
		right := &sym[left.next]
		// An entry is stale if the symbols have changed since.
		if rank, ok := m.pairs.get(left.id, right.id); !ok || m.results[rank] != want {
			continue
		}
		left.id = want
		left.size += right.size
		left.next = right.next
		right.dead = true
		if right.next >= 0 {
			sym[right.next].prev = pos
			if rank, ok := m.pairs.get(want, sym[right.next].id); ok {
				s.heap = minheap.Push(s.heap, uint64(rank)<<32|uint64(pos))
			}
		}
		if left.prev >= 0 {
			if rank, ok := m.pairs.get(sym[left.prev].id, want); ok {
				s.heap = minheap.Push(s.heap, uint64(rank)<<32|uint64(left.prev))
			}
		}
	}
}

// pairTable maps pairs of ids to ranks.
type pairTable struct{ slots []pairSlot }

type pairSlot struct {
	key  uint64 // both ids plus one; 0: free
	rank uint32
}

func (t pairTable) slot(a, b uint32) *pairSlot {
	key := (uint64(a)<<32 | uint64(b)) + 1
	h := key * 0x9E3779B97F4A7C15
	mask := uint64(len(t.slots) - 1)
	for i := (h ^ h>>32) & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

func (t pairTable) set(a, b, rank uint32) {
	*t.slot(a, b) = pairSlot{(uint64(a)<<32 | uint64(b)) + 1, rank}
}

func (t pairTable) get(a, b uint32) (rank uint32, ok bool) {
	s := t.slot(a, b)
	return s.rank, s.key != 0
}

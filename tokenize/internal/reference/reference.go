// Package reference is the slow, obvious oracle for the models: each function follows the
// definition literally, with Go strings and maps. Only tests use it, to check the fast engines and
// the general pipeline.
package reference

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// BPE is byte pair encoding over characters.
type BPE struct {
	Vocab        map[string]uint32
	Merges       [][2]string // best first; of equal pairs the last counts
	Unk          string      // "" for none
	FuseUnk      bool
	ByteFallback bool
	IgnoreMerges bool
	Prefix       string // before characters that do not begin a word
	Suffix       string // after the character that ends a word
}

// Encode merges the pair of the lowest rank, leftmost among equals, until there is none.
func (m *BPE) Encode(word string) (ids []uint32) {
	if id, ok := m.Vocab[word]; ok && m.IgnoreMerges {
		return []uint32{id}
	}
	ids = m.symbols(word)
	names := map[uint32]string{}
	for s, id := range m.Vocab {
		names[id] = s
	}
	ranks := map[[2]string]int{}
	for rank, p := range m.Merges {
		ranks[p] = rank
	}
	return Merge(ids, func(a, b uint32) (rank int, joined uint32, ok bool) {
		rank, ok = ranks[[2]string{names[a], names[b]}]
		return rank, m.Vocab[names[a]+strings.TrimPrefix(names[b], m.Prefix)], ok
	})
}

// Merge joins neighbouring symbols while any pair has a rank: lowest rank first, leftmost among
// equals.
func Merge[S any](symbols []S, pair func(a, b S) (rank int, joined S, ok bool)) []S {
	for {
		lowest, at := math.MaxInt, -1
		var merged S
		for i := 0; i+1 < len(symbols); i++ {
			if rank, joined, ok := pair(symbols[i], symbols[i+1]); ok && rank < lowest {
				lowest, at, merged = rank, i, joined
			}
		}
		if at < 0 {
			return symbols
		}
		symbols = slices.Concat(symbols[:at], []S{merged}, symbols[at+2:])
	}
}

func (m *BPE) symbols(word string) (ids []uint32) {
	pending := 0 // unknown characters not yet written
	flush := func() {
		for ; pending > 0; pending-- {
			ids = append(ids, m.Vocab[m.Unk])
		}
	}
	for i, r := range word {
		s := string(r)
		if i > 0 {
			s = m.Prefix + s
		}
		if i+utf8.RuneLen(r) == len(word) {
			s += m.Suffix
		}
		if id, ok := m.Vocab[s]; ok {
			flush()
			ids = append(ids, id)
			continue
		}
		if b, ok := m.bytes(s); ok && m.ByteFallback {
			ids = append(ids, b...) // before what is pending, as in the original
			continue
		}
		if m.Unk != "" {
			if pending > 0 && !m.FuseUnk {
				flush()
			}
			pending = 1
		}
	}
	flush()
	return ids
}

func (m *BPE) bytes(s string) (ids []uint32, ok bool) {
	for i := range len(s) {
		id, ok := m.Vocab[fmt.Sprintf("<0x%02X>", s[i])]
		if !ok {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// WordPiece spells a word with the longest tokens from the left, or as unk if that fails or the
// word has more than maxChars characters.
func WordPiece(vocab map[string]uint32, unk uint32, prefix string, maxChars int, word string) (ids []uint32) {
	if utf8.RuneCountInString(word) > maxChars {
		return []uint32{unk}
	}
	for start := 0; start < len(word); {
		end := len(word)
		for ; end > start; end-- {
			piece := word[start:end]
			if start > 0 {
				piece = prefix + piece
			}
			if id, ok := vocab[piece]; ok && utf8.ValidString(word[start:end]) {
				ids = append(ids, id)
				break
			}
		}
		if end == start {
			return []uint32{unk}
		}
		start = end
	}
	return ids
}

// Unigram is a vocabulary of pieces with scores.
type Unigram struct {
	Vocab  map[string]uint32
	Scores []float64 // indexed by id; scores of pieces not in Vocab matter only for unknown characters
	Unk    uint32
	Bytes  map[byte]uint32 // for byte fallback, nil without it
}

// Encode returns the segmentation with the highest sum of scores; among equals, the one with the
// longest last piece. A character without a piece scores 10 less than the worst piece. A run of
// them is one token: a piece that is spelled like it, its bytes, or unk.
func (m *Unigram) Encode(word string) (ids []uint32) {
	type path struct {
		ok    bool
		score float64
		from  int
		id    uint32
	}
	worst, longest := slices.Min(m.Scores), 0
	for piece := range m.Vocab {
		longest = max(longest, len(piece))
	}
	paths := make([]path, len(word)+1)
	paths[0].ok = true
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRuneInString(word[i:])
		single := false
		try := func(end int, score float64, id uint32) {
			if p := &paths[end]; !p.ok || paths[i].score+score > p.score {
				*p = path{true, paths[i].score + score, i, id}
			}
		}
		for end := i + 1; end <= min(i+longest, len(word)); end++ {
			if id, ok := m.Vocab[word[i:end]]; ok {
				try(end, m.Scores[id], id)
				single = single || end == i+size
			}
		}
		if !single {
			try(i+size, worst-10, m.Unk)
		}
		i += size
	}
	for end := len(word); end > 0; {
		p := paths[end]
		start := p.from
		for ; p.id == m.Unk && start > 0 && paths[start].id == m.Unk; start = paths[start].from {
		}
		ids = append(m.ids(word[start:end], p.id), ids...)
		end = start
	}
	return ids
}

// ids returns the ids of one piece of the best path, or of a run of unknown characters.
func (m *Unigram) ids(piece string, id uint32) []uint32 {
	if id != m.Unk {
		return []uint32{id}
	}
	if id, ok := m.Vocab[piece]; ok {
		return []uint32{id}
	}
	var bytes []uint32
	for i := range len(piece) {
		if id, ok := m.Bytes[piece[i]]; ok {
			bytes = append(bytes, id)
		}
	}
	if len(bytes) == len(piece) {
		return bytes
	}
	return []uint32{m.Unk}
}

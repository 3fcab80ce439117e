package bytebpe

import "github.com/dsload/dsload/tokenize/internal/pairhash"

// noRank is the rank of a pair that never merges. noSymbol has no pairs; it stands before and after
// a word.
const (
	noRank   = pairhash.NoRank
	noSymbol = pairhash.NoSymbol
)

// pairSet is the growing hash table used while a model is built, with open addressing over entries
// in slot form.
type pairSet struct{ slots []uint64 }

func (s *pairSet) at(key uint64) int {
	mask := uint64(len(s.slots) - 1)
	i := key * 0x9e3779b97f4a7c15 >> 20 & mask
	// An empty slot is 0. Ranks are stored plus one, so that key 0 with rank 0 differs from it.
	for s.slots[i] != 0 && s.slots[i]>>24 != key {
		i = (i + 1) & mask
	}
	return int(i)
}

func (s *pairSet) find(a, b uint32) uint32 {
	e := s.slots[s.at(pairhash.Key(a, b))]
	if e == 0 {
		return noRank
	}
	return uint32(e)&noRank - 1
}

// put sets the rank of a pair; the caller stays within the capacity.
func (s *pairSet) put(a, b, rank uint32) {
	key := pairhash.Key(a, b)
	s.slots[s.at(key)] = key<<24 | uint64(rank+1)
}

// entries returns the pairs in slot form, reusing the set's memory.
func (s *pairSet) entries() []uint64 {
	out := s.slots[:0]
	for _, e := range s.slots {
		if e != 0 {
			out = append(out, e-1)
		}
	}
	return out
}

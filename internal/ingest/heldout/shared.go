package heldout

import "slices"

// MaxShared is how many documents of val are compared with those of train.
const MaxShared = 1 << 15

// A Shared finds the documents that the sources of val and those of train have in common. It knows those of val
// before the first of train comes.
type Shared struct {
	hashes []uint64 // documents of val, in ascending order once Seal was called
	Full   bool     // val has more than MaxShared
	met    map[uint64]struct{}
}

// Add adds a document of val. It reports whether there is room for more.
func (s *Shared) Add(hash uint64) bool {
	if len(s.hashes) == MaxShared {
		s.Full = true
		return false
	}
	s.hashes = append(s.hashes, hash)
	return true
}

// Seal ends the documents of val. met are those that train was found to have, from a checkpoint.
func (s *Shared) Seal(met []uint64) {
	slices.Sort(s.hashes)
	s.met = map[uint64]struct{}{}
	for _, hash := range met {
		s.met[hash] = struct{}{}
	}
}

// Meet notes a document of train. It reports whether val has it, and train had it not yet.
func (s *Shared) Meet(hash uint64) bool {
	if _, found := slices.BinarySearch(s.hashes, hash); !found || s.Has(hash) {
		return false
	}
	s.met[hash] = struct{}{}
	return true
}

// Has reports whether train has a document of val.
func (s *Shared) Has(hash uint64) bool { _, ok := s.met[hash]; return ok }

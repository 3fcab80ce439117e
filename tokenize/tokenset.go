package tokenize

import (
	"math"

	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// tokenSet is the model's vocabulary with the added tokens, which take precedence both ways.
type tokenSet struct {
	*vocab.Table
	added   map[string]uint32
	addedR  map[uint32]string
	decoded map[uint32]string // decoded text of the added tokens whose content differs
	special map[string]bool
	numIDs  int

	firstAdded uint32 // the lowest id in addedR
}

func newTokenSet(s *spec.Spec) *tokenSet {
	table := s.Model.Table()
	v := &tokenSet{
		Table: table, added: make(map[string]uint32, len(s.Added)), addedR: make(map[uint32]string, len(s.Added)),
		special: map[string]bool{}, numIDs: table.Len(), firstAdded: math.MaxUint32,
	}
	for _, a := range s.Added {
		v.added[a.Content], v.addedR[a.ID] = a.ID, a.Content
		if a.Special {
			v.special[a.Content] = true
		}
		if a.Decoded != a.Content {
			if v.decoded == nil {
				v.decoded = map[uint32]string{}
			}
			v.decoded[a.ID] = a.Decoded
		}
		v.numIDs = max(v.numIDs, int(a.ID)+1)
		v.firstAdded = min(v.firstAdded, a.ID)
	}
	return v
}

// addedEntryBytes is the memory of an added token in the three maps, at their lowest load.
const addedEntryBytes = 184

func (v *tokenSet) bytes() int64 {
	n := v.Bytes()
	for s := range v.added {
		n += int64(len(s)) + addedEntryBytes
	}
	return n
}

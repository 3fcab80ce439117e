package heldout

import (
	"math"
	"slices"
)

// A Chooser decides, document by document and from content alone, which documents go to the split
// "val".
//
// A document is a candidate when the hash of its text falls below a threshold, and candidates are
// taken until the wanted number of examples is held out. The threshold never rises, and equal texts
// have equal hashes, so no text is in both splits: a text that went to training was not a candidate
// and never becomes one. Copies of a held-out text join it, or are left out of training (and
// counted) once the split is full.
//
// Holding out whole documents keeps chunks of one text from standing on both sides. The last one is
// cut where the split is full; the rest of it is left out.
type Chooser struct {
	Want  int64   // examples, 0 = hold nothing out
	Have  int64   // examples held out
	Share float64 // least part of all documents that are candidates
	// hashes of the documents held out
	documents map[uint64]struct{}
	top       uint64 // the largest of them
}

// DocumentBytes bounds what one held-out document costs in memory: a map entry with its share of the
// table's slack.
const DocumentBytes = 40

// New returns a chooser of documents for the wanted number of examples. expected is a lower bound of all examples,
// 0 if nothing bounds them.
func New(want, expected int64) *Chooser {
	h := &Chooser{Want: want}
	if want > 0 {
		h.documents = make(map[uint64]struct{})
		// Twice want/expected fills the split about half way through a small corpus or earlier. Where nothing bounds the
		// corpus, half of the first documents are taken: exact numbers matter more than the spread. The share does not
		// depend on the format of the sources, and so neither does the choice.
		h.Share = 0.5
		if expected > 0 {
			h.Share = min(0.5, 2*float64(want)/float64(expected))
		}
	}
	return h
}

// Threshold returns the hash below which a document is a candidate now. If the estimate behind
// Share was too high (few long documents make many examples), the part that is still missing keeps
// the threshold up. It falls with every example held out.
func (h *Chooser) Threshold() uint64 {
	missing := float64(h.Want-h.Have) / float64(h.Want)
	return uint64(max(h.Share, missing/8) * math.MaxUint64)
}

// Verdict is where a document goes.
type Verdict int

const (
	ToTrain Verdict = iota
	ToVal
	ToNeither // a copy of a held-out document after the split was full
)

// Choose returns where a document goes, by the hash of its text.
func (h *Chooser) Choose(hash uint64) Verdict {
	if h.Want == 0 && h.documents == nil {
		return ToTrain
	}
	heldOut := h.Has(hash)
	switch {
	case heldOut && h.Full():
		return ToNeither
	case heldOut:
		return ToVal
	case h.Full() || hash >= h.Threshold():
		return ToTrain
	}
	h.take(hash)
	return ToVal
}

func (h *Chooser) take(hash uint64) {
	h.documents[hash] = struct{}{}
	h.top = max(h.top, hash)
}

// Trains reports whether Choose returns ToTrain, which changes nothing.
func (h *Chooser) Trains(hash uint64) bool {
	return !h.Has(hash) && (h.Full() || hash >= h.Threshold())
}

// Has reports whether a document with this hash was held out.
func (h *Chooser) Has(hash uint64) bool {
	if hash > h.top { // most are
		return false
	}
	_, ok := h.documents[hash]
	return ok
}

// Close makes the chooser take no more documents, but know those that were held out before.
func (h *Chooser) Close(hashes []uint64) {
	h.documents = make(map[uint64]struct{}, len(hashes))
	h.Restore(h.Have, hashes)
}

// Full reports whether all examples that are wanted are held out.
func (h *Chooser) Full() bool { return h.Have >= h.Want }

// Hashes lists what is held out, for the checkpoint; the order does not matter to restore. What was held out before Close
// is not listed.
func (h *Chooser) Hashes() []uint64 {
	if h.Want == 0 {
		return nil
	}
	out := make([]uint64, 0, len(h.documents))
	for hash := range h.documents {
		out = append(out, hash)
	}
	return out
}

// Restore sets a new chooser to what a checkpoint holds.
func (h *Chooser) Restore(have int64, hashes []uint64) {
	h.Have = have
	for _, hash := range hashes {
		h.take(hash)
	}
}

// Size returns how many hashes are known.
func (h *Chooser) Size() int { return len(h.documents) }

// Empty reports whether no hash is known and none is taken, so that the hashes of documents do not matter.
func (h *Chooser) Empty() bool { return h.documents == nil }

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

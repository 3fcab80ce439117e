package ingest

import (
	"math"
	"math/bits"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
)

// holdout decides, document by document and from content alone, which documents go to the split
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
type holdout struct {
	want  int64   // examples, 0 = hold nothing out
	have  int64   // examples held out
	share float64 // least part of all documents that are candidates
	// hashes of the documents held out
	documents map[uint64]struct{}
}

// heldBytes bounds what one held-out document costs in memory: a map entry with its share of the
// table's slack.
const heldBytes = 40

// candidateShare returns the part of all documents that are candidates, between 0 and 1/2.
//
// expected is a lower bound of the number of examples that the build can make, so twice
// want/expected fills the split about half way through the corpus or earlier, wherever the corpus
// is not much smaller than it looks. Where nothing bounds the corpus (expected 0), half of the
// first documents are taken: exact numbers matter more than the spread.
func candidateShare(want, expected int64) float64 {
	if want <= 0 {
		return 0
	}
	if expected <= 0 {
		return 0.5
	}
	return min(0.5, 2*float64(want)/float64(expected))
}

func newHoldout(want, expected int64) *holdout {
	h := &holdout{want: want, share: candidateShare(want, expected)}
	if want > 0 {
		h.documents = make(map[uint64]struct{})
	}
	return h
}

// threshold returns the hash below which a document is a candidate now. If the estimate behind
// share was too high (few long documents make many examples), the part that is still missing keeps
// the threshold up. It falls with every example held out.
func (h *holdout) threshold() uint64 {
	missing := float64(h.want-h.have) / float64(h.want)
	return uint64(max(h.share, missing/8) * math.MaxUint64)
}

// verdict is where a document goes.
type verdict int

const (
	toTrain verdict = iota
	toVal
	toNeither // a copy of a held-out document after the split was full
)

func (h *holdout) choose(hash uint64) verdict {
	if h.want == 0 && h.documents == nil {
		return toTrain
	}
	_, heldOut := h.documents[hash]
	switch {
	case heldOut && h.full():
		return toNeither
	case heldOut:
		return toVal
	case h.full() || hash >= h.threshold():
		return toTrain
	}
	h.documents[hash] = struct{}{}
	return toVal
}

// has reports whether a document with this hash was held out.
func (h *holdout) has(hash uint64) bool { _, ok := h.documents[hash]; return ok }

// close makes the holdout take no more documents, but know those that were held out before.
func (h *holdout) close(hashes []uint64) {
	h.documents = make(map[uint64]struct{}, len(hashes))
	for _, hash := range hashes {
		h.documents[hash] = struct{}{}
	}
}

func (h *holdout) full() bool { return h.have >= h.want }

// hashes lists what is held out, for the checkpoint; the order does not matter to restore.
func (h *holdout) hashes() []uint64 {
	out := make([]uint64, 0, len(h.documents))
	for hash := range h.documents {
		out = append(out, hash)
	}
	return out
}

func (h *holdout) restore(have int64, hashes []uint64) {
	h.have = have
	for _, hash := range hashes {
		h.documents[hash] = struct{}{}
	}
}

// expectedExamples returns a lower bound, by rule of thumb, of the examples that a build can make;
// 0 if nothing bounds them.
//
//	textBytes  size of the sources' text, 0 if unknown
//
// An example holds at most maxLength tokens, a token of text some four bytes; documents that are
// truncated or dropped give one example each whatever their size, so there the estimate is lower.
//
// The size is taken by its power of two, so that a source that is fixed under an unfinished build
// chooses the same documents.
func expectedExamples(o *option.Options, textBytes int64) int64 {
	if textBytes > 0 {
		textBytes = 1 << (bits.Len64(uint64(textBytes)) - 1)
	}
	const bytesPerToken = 4
	perExample := int64(o.MaxLength) * bytesPerToken
	if o.Overflow != example.Chunk {
		perExample *= 8
	}
	least := int64(math.MaxInt64)
	if o.MaxExamples > 0 {
		least = min(least, o.MaxExamples+o.MaxValExamples)
	}
	if o.MaxTokens > 0 {
		least = min(least, o.MaxTokens/int64(o.MaxLength))
	}
	if o.MaxBytes > 0 && (textBytes == 0 || o.MaxBytes < textBytes) {
		textBytes = o.MaxBytes
	}
	if textBytes > 0 {
		least = min(least, textBytes/perExample)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return max(1, least)
}

package ingest

import (
	"slices"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/tokenize"
)

// around is the special tokens that the cutter writes before and after a text. A text that was rendered earlier may
// have them at its ends: they are written once.
type around struct{ before, after []uint32 }

// newAround returns what the cutter writes next to a text, as far as it is special tokens: other ones may be words.
func newAround(c example.CutterOptions, t *tokenize.Tokenizer) around {
	ordinary := func(id uint32) bool { return !work.IsSpecial(t, id) }
	before, after := slices.Concat(c.RowPrefix, c.Prefix), slices.Concat(c.Suffix, c.RowSuffix)
	for i, id := range slices.Backward(before) {
		if ordinary(id) {
			before = before[i+1:]
			break
		}
	}
	if i := slices.IndexFunc(after, ordinary); i >= 0 {
		after = after[:i]
	}
	return around{before, after}
}

// repeated returns how many ids at the beginning of a text, and at its end, the cutter writes too.
func (a *around) repeated(ids []uint32, first, last bool) (start, end int) {
	if first {
		start = overlap(a.before, ids)
	}
	if last {
		end = overlap(ids[start:], a.after)
	}
	return start, end
}

// overlap returns how many of the last of some ids are the first of others.
func overlap(ids, others []uint32) int {
	n := min(len(ids), len(others))
	for n > 0 && !slices.Equal(ids[len(ids)-n:], others[:n]) {
		n--
	}
	return n
}

// once returns the ids of a text without those that the cutter writes too.
func (a *around) once(ids []uint32, first, last bool) []uint32 {
	start, end := a.repeated(ids, first, last)
	return ids[start : len(ids)-end]
}

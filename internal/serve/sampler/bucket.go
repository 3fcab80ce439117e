package sampler

import (
	"slices"

	"github.com/dsload/dsload/internal/radix"
)

// window is one window of the shuffled order, sorted by length and shuffled again by groups.
type window struct {
	start int64 // position of items[0], -1 for none
	items []Item

	shuffled []Item // scratch: the window before sorting
	lengths  []int32
	keys     []uint64
}

// WindowBytes returns the memory of a window of bucket rows, for the ledger.
func WindowBytes(bucket int) int64 { return int64(bucket) * (32 + 32 + 4 + 8) }

// seekWindow sets o.window to the window that holds position.
func (o *Order) seekWindow(position int64) error {
	w := &o.window
	if w.start >= 0 && position >= w.start && position < w.start+int64(len(w.items)) {
		return nil
	}
	epoch, i := position/o.rows, position%o.rows
	number := i / int64(o.opts.Bucket)
	start := epoch*o.rows + number*int64(o.opts.Bucket)
	n := int(min(int64(o.opts.Bucket), (epoch+1)*o.rows-start))

	w.start = -1
	w.shuffled = o.appendShuffled(slices.Grow(w.shuffled[:0], n), start, n)
	w.lengths = slices.Grow(w.lengths[:0], n)[:n]
	if err := o.lengths(w.shuffled, w.lengths); err != nil {
		return err
	}
	// A key has the length in its upper half and the index in its lower: sorting integers is fast,
	// and equal lengths keep their order.
	w.keys = slices.Grow(w.keys[:0], n)
	for i, l := range w.lengths {
		w.keys = append(w.keys, uint64(uint32(l))<<32|uint64(i))
	}
	radix.Sort(w.keys)

	group := o.opts.Group
	groups := (n + group - 1) / group
	perm := newPermutation(uint64(groups), key(o.opts.Seed, purposeGroup, uint64(epoch), uint64(number)))
	w.items = slices.Grow(w.items[:0], n)
	for g := range groups {
		from := int(perm.at(uint64(g))) * group
		for _, k := range w.keys[from:min(from+group, n)] {
			item := w.shuffled[uint32(k)]
			item.Position, item.Length = start+int64(len(w.items)), int32(k>>32)
			w.items = append(w.items, item)
		}
	}
	w.start = start
	return nil
}

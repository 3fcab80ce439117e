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

// WindowRows returns the rows of a window: bucket, rounded up to whole groups, and at most the rows
// of an epoch. With windows of whole groups, batches whose size divides group never cross a border
// between groups.
func WindowRows(bucket, group int, rows int64) int {
	if bucket == 0 {
		return 0
	}
	group = min(group, bucket)
	return int(min(int64((bucket+group-1)/group*group), rows))
}

// WindowBytes returns the memory of a window of so many rows, for the ledger.
func WindowBytes(rows int) int64 { return int64(rows) * (32 + 32 + 4 + 8) }

// seekWindow sets o.window to the window that holds position.
func (o *Order) seekWindow(position int64) error {
	w := &o.window
	if w.start >= 0 && position >= w.start && position < w.start+int64(len(w.items)) {
		return nil
	}
	start, rows := o.windowAt(position)
	epoch, number, n := position/o.rows, position%o.rows/int64(o.opts.Bucket), int(rows)
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
	radix.SortFrom(w.keys, 32)

	group := min(o.opts.Group, o.opts.Bucket)
	whole := n / group
	perm := newPermutation(uint64(max(whole, 1)), key(o.opts.Seed, purposeGroup, uint64(epoch), uint64(number)))
	w.items = slices.Grow(w.items[:0], n)
	for g := range whole {
		from := int(perm.at(uint64(g))) * group
		w.appendItems(start, w.keys[from:from+group])
	}
	w.appendItems(start, w.keys[whole*group:]) // in the middle, they would put batches across groups
	w.start = start
	return nil
}

// appendItems appends the rows of the keys to the items of the window that begins at start.
func (w *window) appendItems(start int64, keys []uint64) {
	for _, k := range keys {
		item := w.shuffled[uint32(k)]
		item.Position, item.Length = start+int64(len(w.items)), int32(k>>32)
		w.items = append(w.items, item)
	}
}

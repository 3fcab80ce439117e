package sampler

import (
	"slices"

	"github.com/dsload/dsload/internal/radix"
)

// windowScratch is what making a window takes.
type windowScratch struct {
	shuffled   []Item // the window before sorting
	keys, room []uint64
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
func WindowBytes(rows int) int64 { return int64(rows) * (2*itemBytes + 2*8) }

// windowOf returns the window that holds position.
func (o *Order) windowOf(position int64) (*part, error) {
	if at := o.user.at; at != nil && position >= at.start && position < at.start+int64(len(at.items)) {
		return at, nil
	}
	start, rows := o.windowAt(position)
	return o.user.move(start, func(p *part) (err error) {
		p.items, err = o.appendWindow(p.items, start, int(rows))
		return err
	})
}

// appendWindow appends the items of the window of n rows that begins at start.
func (o *Order) appendWindow(items []Item, start int64, n int) ([]Item, error) {
	w := &o.scratch
	w.shuffled = o.appendShuffled(slices.Grow(w.shuffled[:0], n), start, n)
	if err := o.locate(w.shuffled); err != nil {
		return nil, err
	}
	// A key has the length in its upper half and the index in its lower: sorting integers is fast,
	// and equal lengths keep their order.
	w.keys = slices.Grow(w.keys[:0], n)
	for i := range w.shuffled {
		w.keys = append(w.keys, uint64(uint32(w.shuffled[i].Length))<<32|uint64(i))
	}
	w.room = slices.Grow(w.room[:0], n)[:n]
	radix.Sort(w.keys, w.room, 32)

	epoch, number := start/o.rows, start%o.rows/int64(o.opts.Bucket)
	group := min(o.opts.Group, o.opts.Bucket)
	whole := n / group
	perm := newPermutation(uint64(max(whole, 1)), key(o.opts.Seed, purposeGroup, uint64(epoch), uint64(number)))
	items = slices.Grow(items, n)
	for g := range whole {
		from := int(perm.at(uint64(g))) * group
		items = w.appendItems(items, start, w.keys[from:from+group])
	}
	// In the middle, the others would put batches across groups.
	return w.appendItems(items, start, w.keys[whole*group:]), nil
}

// appendItems appends the rows of the keys to the items of the window that begins at start.
func (w *windowScratch) appendItems(items []Item, start int64, keys []uint64) []Item {
	for _, k := range keys {
		item := w.shuffled[uint32(k)]
		item.Position = start + int64(len(items))
		items = append(items, item)
	}
	return items
}

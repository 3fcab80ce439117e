package sampler

import "slices"

// Find returns the positions in [from, end) at which an example comes, ascending, at most limit of
// them. It computes them: with bucketing it needs the lengths of the windows that hold the
// positions, else none. Errors are those of the LocateFunc.
func (o *Order) Find(ref Ref, from, end int64, limit int) (found []int64, err error) {
	if from >= end || limit < 1 {
		return nil, nil
	}
	first, last := from, end // positions before bucketing
	if o.opts.Bucket > 0 {
		first, _ = o.windowAt(from)
		start, n := o.windowAt(end - 1)
		last = start + n
	}
	s, mixed := &o.sources[ref.Source], len(o.sources) > 1
	window := int64(-1)
	before := first // how many rows of the source come before it; in a mix, before its window
	if mixed {
		before = o.mix.countBeforeWindow(int(ref.Source), first)
	}
	for epoch := before / int64(s.rows); len(found) < limit; epoch++ {
		p := epoch*int64(s.rows) + s.positionOf(ref.Row, epoch)
		if mixed {
			p = o.mix.rowPosition(int(ref.Source), p)
		}
		if p >= last {
			break
		}
		if p < first {
			continue
		}
		if o.opts.Bucket == 0 {
			found = append(found, p)
			continue
		}
		if start, _ := o.windowAt(p); start != window {
			window = start
			if found, err = o.findInWindow(found, ref, start, from, end); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(found)
	return found[:min(len(found), limit)], nil
}

// findInWindow appends the positions of an example in the bucket window that begins at start.
func (o *Order) findInWindow(found []int64, ref Ref, start, from, end int64) ([]int64, error) {
	window, err := o.windowOf(start)
	if err != nil {
		return nil, err
	}
	for _, it := range window.items {
		if it.Ref == ref && it.Position >= from && it.Position < end {
			found = append(found, it.Position)
		}
	}
	return found, nil
}

// windowAt returns where the bucket window of a position begins, and its number of rows.
func (o *Order) windowAt(position int64) (start, rows int64) {
	epoch, bucket := position/o.rows, int64(o.opts.Bucket)
	start = epoch*o.rows + position%o.rows/bucket*bucket
	return start, min(bucket, (epoch+1)*o.rows-start)
}

// positionOf returns where a row comes in an epoch of the source. It is the inverse of at.
func (s *sourceOrder) positionOf(row, epoch int64) int64 {
	if s.shuffle == None {
		return row
	}
	if epoch != s.epoch {
		s.setEpoch(epoch)
	}
	if s.shuffle == Full {
		return int64(s.perm.inverse(uint64(row)))
	}
	slot := s.perm.inverse(uint64(row) / BlockRows)
	at := slot*BlockRows + uint64(row)%BlockRows
	if slot > s.short {
		at -= s.perm.n*BlockRows - s.rows
	}
	return int64(at)
}

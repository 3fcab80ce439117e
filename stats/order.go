package stats

import (
	"slices"

	"github.com/dsload/dsload/internal/serve/sampler"
)

// Only this file knows the order in which a server serves rows by default: full shuffle with seed
// 0.

const (
	// sampleRows is how many rows of the order are examined: whole epochs if they fit, else windows
	// spread over one.
	sampleRows = 1 << 20
	// segmentRows is the length of a window of the sample: a multiple of every bucket and batch
	// size, so that the batches in it are those of the epoch.
	segmentRows = 1 << 15
	// Small splits are examined for several epochs, up to smallRows rows or maxEpochs epochs,
	// since one shuffle says little.
	smallRows = 1 << 18
	maxEpochs = 16
)

// segment is a run of positions of the order.
type segment struct{ start, n int64 }

// plan chooses the segments for a split with the given number of rows. sampled reports whether they
// omit rows of the epoch.
func chooseSegments(rows int64) (segments []segment, sampled bool) {
	if rows <= sampleRows {
		for e := range max(1, min(maxEpochs, smallRows/rows)) {
			segments = append(segments, segment{e * rows, rows})
		}
		return segments, false
	}
	const wanted = sampleRows / segmentRows
	all := (rows + segmentRows - 1) / segmentRows
	for k := range int64(wanted) {
		start := k * all / wanted * segmentRows
		segments = append(segments, segment{start, min(segmentRows, rows-start)})
	}
	return segments, true
}

// servedRows lists the rows at the positions of the segments, in order.
func servedRows(rows int64, segments []segment) ([]int64, error) {
	order, err := sampler.NewOrder(sampler.Options{Sources: []sampler.Source{{Rows: rows}}}, nil)
	if err != nil {
		return nil, err
	}
	var out []int64
	var items []sampler.Item
	for _, s := range segments {
		out = slices.Grow(out, int(s.n))
		for at := int64(0); at < s.n; at += int64(len(items)) {
			if items, err = order.Append(items[:0], s.start+at, int(min(4096, s.n-at))); err != nil {
				return nil, err
			}
			for _, it := range items {
				out = append(out, it.Row)
			}
		}
	}
	return out, nil
}

// bucketed calls visit with the lengths of rows in bucketed order, in pieces; start is the position
// within the epoch. lengths are those of servedRows.
func bucketed(rows int64, segments []segment, lengths []int32, bucket int,
	visit func(start int64, lengths []int32)) error {
	if bucket == 0 {
		for _, s := range segments {
			visit(s.start%rows, lengths[:s.n])
			lengths = lengths[s.n:]
		}
		return nil
	}
	var window []int32 // the lengths of the window that the order is about to sort
	order, err := sampler.NewOrder(sampler.Options{Sources: []sampler.Source{{Rows: rows}}, Bucket: bucket},
		func(items []sampler.Item) error {
			for i := range items {
				items[i].Length = window[i]
			}
			return nil
		})
	if err != nil {
		return err
	}
	var items []sampler.Item
	var sorted []int32
	for _, s := range segments {
		for at := int64(0); at < s.n; {
			// A segment's start and bucket are aligned, so this is one window of the order.
			n := min(int64(bucket), s.n-at)
			window = lengths[:n]
			lengths = lengths[n:]
			if items, err = order.Append(items[:0], s.start+at, int(n)); err != nil {
				return err
			}
			sorted = sorted[:0]
			for _, it := range items {
				sorted = append(sorted, it.Length)
			}
			visit((s.start+at)%rows, sorted)
			at += n
		}
	}
	return nil
}

package shard

import (
	"math"
	"sync/atomic"

	"github.com/dsload/dsload/internal/shardfile"
)

// readPlaces returns where the columns of p's batch are. Only the numbers of values of its list
// columns vary, so they are read once and cached; then the message is compared with what it must
// be.
func (r *Split) readPlaces(sc *readScratch, p rowRef) ([]shardfile.ColumnPlace, error) {
	l := r.d.layout
	if sc.batch.Values = p.s.values.get(sc.batch.Values[:0], l, p); len(sc.batch.Values) > 0 {
		sc.batch.Places, _ = l.Place(sc.batch.Places[:0], p.rows, sc.batch.Values)
		return sc.batch.Places, nil
	}
	raw := sc.take(int(l.MetaLen))
	if err := p.s.read(raw, p.start); err != nil {
		return nil, err
	}
	if !l.ReadBatchMeta(&sc.batch, raw, p.rows, p.bodyLen) {
		return nil, shardfile.Corrupt(p.s.path, p.start, "record batch metadata differ from what the footer says")
	}
	p.s.values.set(l, p, sc.batch.Values)
	return sc.batch.Places, nil
}

// batchValues holds the number of values of each list column of each record batch of a shard, plus
// one; 0 means not yet known. It is empty if the only list column is input_ids, for which the
// footer suffices.
type batchValues []atomic.Uint32

func newBatchValues(l *shardfile.Layout, batches int) batchValues {
	if n := l.NumLists(); n > 1 {
		return make(batchValues, n*batches)
	}
	return nil
}

// get appends the number of values of each column, or nothing if they are unknown.
func (v batchValues) get(dst []int64, l *shardfile.Layout, p rowRef) []int64 {
	if v == nil {
		return dst
	}
	lists := v[p.batch*l.NumLists():]
	for i, c := range l.Cols {
		n := p.rows
		if c.List {
			if n = int64(lists[i].Load()) - 1; n < 0 {
				return dst[:0]
			}
		}
		dst = append(dst, n)
	}
	return dst
}

func (v batchValues) set(l *shardfile.Layout, p rowRef, values []int64) {
	if v == nil {
		return
	}
	lists := v[p.batch*l.NumLists():]
	for i, c := range l.Cols {
		if c.List && values[i] < math.MaxUint32 {
			lists[i].Store(uint32(values[i] + 1))
		}
	}
}

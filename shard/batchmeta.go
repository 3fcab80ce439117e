package shard

import (
	"encoding/binary"
	"math"
	"sync/atomic"
)

// readPlaces returns where the columns of p's batch are. Only the numbers of values of its list
// columns vary, so they are read once and cached; then the message is compared with what it must
// be.
func (r *SplitReader) readPlaces(sc *readScratch, p rowRef) ([]columnPlace, error) {
	l := r.d.layout
	if sc.values = p.s.values.get(sc.values[:0], l, p); len(sc.values) > 0 {
		sc.places, _ = l.place(sc.places[:0], p.rows, sc.values)
		return sc.places, nil
	}
	raw := sc.take(int(l.metaLen))
	if err := p.s.read(raw, p.start); err != nil {
		return nil, err
	}
	if !l.readBatchMeta(sc, raw, p.rows, p.bodyLen) {
		return nil, corrupt(p.s.path, p.start, "record batch metadata differ from what the footer says")
	}
	p.s.values.set(l, p, sc.values)
	return sc.places, nil
}

// batchValues holds the number of values of each list column of each record batch of a shard, plus
// one; 0 means not yet known. It is empty if the only list column is input_ids, for which the
// footer suffices.
type batchValues []atomic.Uint32

func newBatchValues(l *layout, batches int) batchValues {
	if n := l.numLists(); n > 1 {
		return make(batchValues, n*batches)
	}
	return nil
}

// get appends the number of values of each column, or nothing if they are unknown.
func (v batchValues) get(dst []int64, l *layout, p rowRef) []int64 {
	if v == nil {
		return dst
	}
	lists := v[p.batch*l.numLists():]
	for i, c := range l.cols {
		n := p.rows
		if c.list {
			if n = int64(lists[i].Load()) - 1; n < 0 {
				return dst[:0]
			}
		}
		dst = append(dst, n)
	}
	return dst
}

func (v batchValues) set(l *layout, p rowRef, values []int64) {
	if v == nil {
		return
	}
	lists := v[p.batch*l.numLists():]
	for i, c := range l.cols {
		if c.list && values[i] < math.MaxUint32 {
			lists[i].Store(uint32(values[i] + 1))
		}
	}
}

// numLists returns the number of list columns, which come first.
func (l *layout) numLists() (n int) {
	for _, c := range l.cols {
		if c.list {
			n++
		}
	}
	return n
}

// readBatchMeta reads the places of a batch from its message into sc.places. It accepts only what
// appendBatchMeta makes.
func (l *layout) readBatchMeta(sc *readScratch, raw []byte, rows, body int64) bool {
	sc.values = sc.values[:0]
	node := l.nodesAt
	for _, c := range l.cols {
		if c.list {
			node += 16
		}
		n := int64(binary.LittleEndian.Uint64(raw[node:]))
		if n < 0 || n > 8*body || !c.list && n != rows {
			return false
		}
		sc.values = append(sc.values, n)
		node += 16
	}
	var planned int64
	sc.places, planned = l.place(sc.places[:0], rows, sc.values)
	sc.meta = l.appendBatchMeta(sc.meta[:0], rows, sc.values, sc.places, body)
	return planned == body && string(sc.meta) == string(raw)
}

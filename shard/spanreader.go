package shard

// spanReader reads spans, and holds the shard of the last one until it reads another or is closed.
type spanReader struct {
	r     *Split
	s     *readShard // locked for reading; nil at first
	shard int32
	found [32][]byte // see find
}

// hold makes s the shard.
func (v *spanReader) hold(shard int32) (err error) {
	if v.s != nil && v.shard == shard {
		return nil
	}
	v.close()
	v.s, err = v.r.acquire(int(shard))
	v.shard = shard
	return err
}

// prefetchBytes is about how much is prefetched at once: the caches nearest to a core hold it beside what is copied.
const prefetchBytes = 8 << 10

// find returns the values of leading spans of one shard, at least of one, nil where they are not in memory, and
// prefetches them. They are valid until v holds another shard. Their rows are anywhere in memory, so copying each would
// begin with a wait.
func (v *spanReader) find(spans []Span) [][]byte {
	first := spans[0].Shard
	kept := first >= 0 && int(first) < v.r.states.n && v.hold(first) == nil && v.s.kept.batches != nil // read reports errors
	n := 0
	for size := int64(0); n < min(len(v.found), len(spans)) && spans[n].Shard == first && size < prefetchBytes; n++ {
		own := int64(spans[n].Len) * v.r.width
		v.found[n] = nil
		if kept {
			if _, data := v.s.keptAt(spans[n].Off, own); len(data) > 0 {
				prefetchLines(&data[0], len(data))
				v.found[n] = data
			}
		}
		size += own
	}
	return v.found[:n]
}

// read fills dst from offset off of a shard.
func (v *spanReader) read(dst []byte, shard int32, off int64) error {
	if err := v.hold(shard); err != nil {
		return err
	}
	return v.r.d.readSpan(v.s, dst, off)
}

func (v *spanReader) close() {
	if v.s != nil {
		v.s.mu.RUnlock()
		v.s = nil
	}
}

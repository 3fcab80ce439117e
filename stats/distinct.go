package stats

// duplicateTable counts values that occurred before. Its memory is bounded: when it holds maxKeys
// distinct values, it keeps only those whose hash ends in one zero bit, then in two, and so on, and
// estimates the rest from them: distinct-value sampling (Gibbons 2001). Which values it keeps
// depends only on the values.
type duplicateTable struct {
	keys    []uint64 // open addressing with linear probing; 0 is empty
	repeats []uint32 // how often the key occurred again
	used    int
	maxKeys int
	zeros   uint // how many low bits of a hash must be zero
}

// maxKeys is the number of distinct rows up to which counts are exact: 24 MiB.
const maxKeys = 3 << 19

func newDuplicateTable(maxKeys int) *duplicateTable {
	return &duplicateTable{keys: make([]uint64, 1024), repeats: make([]uint32, 1024), maxKeys: maxKeys}
}

// add adds a value by its hash.
func (t *duplicateTable) add(hash uint64) {
	if hash == 0 {
		hash = 1 << 63
	}
	if hash&(1<<t.zeros-1) != 0 {
		return
	}
	i := t.slot(hash)
	if t.keys[i] == hash {
		if t.repeats[i] < 1<<32-1 {
			t.repeats[i]++
		}
		return
	}
	t.keys[i] = hash
	if t.used++; t.used > t.maxKeys {
		t.halve()
	} else if t.used > len(t.keys)/4*3 {
		t.rebuild(2 * len(t.keys))
	}
}

// slot returns the slot of a key, or the empty one where it belongs. The high bits of the hash
// select it, since the low ones are all zero.
func (t *duplicateTable) slot(hash uint64) int {
	mask := len(t.keys) - 1
	i := int(hash>>33) & mask
	for t.keys[i] != 0 && t.keys[i] != hash {
		i = (i + 1) & mask
	}
	return i
}

// rebuild moves the keys into a table of another size.
func (t *duplicateTable) rebuild(size int) {
	keys, repeats := t.keys, t.repeats
	t.keys, t.repeats = make([]uint64, size), make([]uint32, size)
	for i, key := range keys {
		if key != 0 {
			j := t.slot(key)
			t.keys[j], t.repeats[j] = key, repeats[i]
		}
	}
}

// halve keeps the keys that end in one more zero bit. It needs room only for those, not for a
// second table.
func (t *duplicateTable) halve() {
	t.zeros++
	type entry struct {
		key     uint64
		repeats uint32
	}
	kept := make([]entry, 0, t.used/2+t.used/32)
	for i, key := range t.keys {
		if key != 0 && key&(1<<t.zeros-1) == 0 {
			kept = append(kept, entry{key, t.repeats[i]})
		}
	}
	clear(t.keys)
	clear(t.repeats)
	t.used = len(kept)
	for _, e := range kept {
		j := t.slot(e.key)
		t.keys[j], t.repeats[j] = e.key, e.repeats
	}
}

// duplicates returns the number of values equal to an earlier one; approximate reports whether it is an estimate.
func (t *duplicateTable) duplicates() (n int64, approximate bool) {
	for _, r := range t.repeats {
		n += int64(r)
	}
	return n << t.zeros, t.zeros > 0
}

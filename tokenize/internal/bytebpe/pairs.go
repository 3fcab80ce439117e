package bytebpe

import "math/bits"

// noRank is the rank of a pair that never merges; noSymbol is a symbol that has no pairs, put before and after a word.
const (
	noRank   = 1<<24 - 1
	noSymbol = 1<<20 - 1
)

// pairTable maps a pair of token ids to its rank by a perfect hash: one small displacement and one slot are read, no probing.
// A slot holds left<<44 | right<<24 | rank. Unused slots hold noSymbol twice, which no lookup of a real pair matches.
type pairTable struct {
	mul    uint64
	bshift uint8
	sshift uint8
	disp   []uint16
	slots  []uint64
}

func pairKey(a, b uint32) uint64 { return uint64(a)<<20 | uint64(b) }

// find returns the rank of the pair, or noRank.
func (t *pairTable) find(a, b uint32) uint32 {
	key := uint64(a)<<20 | uint64(b)
	p := key * t.mul
	e := t.slots[uint32(p>>8)*uint32(t.disp[p>>t.bshift])>>t.sshift]
	r := uint32(e) & noRank
	if e>>24 != key {
		r = noRank // a conditional move: the outcome is unpredictable
	}
	return r
}

const emptySlot = uint64(noSymbol)<<44 | uint64(noSymbol)<<24 | noRank

// newPairTable builds the table from entries in slot form; of equal pairs the last counts. It fails only for sets of pairs made to collide under
// every multiplier tried.
func newPairTable(entries []uint64) (pairTable, bool) {
	sbits := max(bits.Len(uint(len(entries)+len(entries)/4)), 4)
	muls := [...]uint64{0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xc2b2ae3d27d4eb4f, 0xff51afd7ed558ccd}
	for try := range 2 * len(muls) {
		if t, ok := tryPairTable(entries, muls[try%len(muls)], sbits+try/len(muls)); ok {
			return t, true
		}
	}
	return pairTable{}, false
}

func tryPairTable(entries []uint64, mul uint64, sbits int) (pairTable, bool) {
	bbits := sbits - 2
	t := pairTable{mul: mul, bshift: uint8(64 - bbits), sshift: uint8(32 - sbits)}
	t.disp = make([]uint16, 1<<bbits)
	t.slots = make([]uint64, 1<<sbits)
	for i := range t.slots {
		t.slots[i] = emptySlot
	}
	// Counting sort by bucket, then buckets by size, largest first.
	start := make([]uint32, 1<<bbits+1)
	for _, e := range entries {
		start[(e>>24)*mul>>t.bshift]++
	}
	sum, largest := uint32(0), uint32(0)
	for i, n := range start {
		start[i] = sum
		sum, largest = sum+n, max(largest, n)
	}
	if largest > 64 {
		return t, false
	}
	sorted := make([]uint64, len(entries))
	for _, e := range entries {
		b := (e >> 24) * mul >> t.bshift
		sorted[start[b]] = e
		start[b]++
	}
	// The end of a bucket is known now; its beginning moves up where pairs occur again.
	sizes := make([]uint8, len(t.disp))
	var first [66]uint32 // of the buckets of a size, once the sizes above it are counted
	begin := uint32(0)
	for b := range sizes {
		end := start[b]
		sizes[b] = uint8(end - lastOnly(sorted, begin, end))
		first[sizes[b]]++
		begin = end
	}
	sum = 0
	for n := len(first) - 1; n >= 0; n-- {
		sum, first[n] = sum+first[n], sum
	}
	order := make([]uint32, len(sizes))
	for b, n := range sizes {
		order[first[n]] = uint32(b)
		first[n]++
	}
	for _, b := range order {
		n := uint32(sizes[b])
		if n == 0 {
			break
		}
		if !t.place(sorted[start[b]-n:start[b]], b) {
			return t, false
		}
	}
	return t, true
}

// lastOnly drops all but the last of equal pairs from a bucket and returns where it begins then.
func lastOnly(sorted []uint64, begin, end uint32) uint32 {
	to := end
next:
	for i := end; i > begin; i-- {
		e := sorted[i-1]
		for _, o := range sorted[to:end] {
			if o>>24 == e>>24 {
				continue next
			}
		}
		to--
		sorted[to] = e
	}
	return to
}

// place finds an odd displacement under which the entries of a bucket meet free slots.
func (t *pairTable) place(entries []uint64, bucket uint32) bool {
	var at [64]uint32
next:
	for d := uint32(1); d < 1<<16; d += 2 {
		for i, e := range entries {
			s := uint32((e>>24)*t.mul>>8) * d >> t.sshift
			if t.slots[s] != emptySlot {
				continue next
			}
			for _, o := range at[:i] {
				if o == s {
					continue next
				}
			}
			at[i] = s
		}
		for i, e := range entries {
			t.slots[at[i]] = e
		}
		t.disp[bucket] = uint16(d)
		return true
	}
	return false
}

func (t *pairTable) bytes() int64 { return int64(len(t.disp)*2 + len(t.slots)*8) }

// pairSet is the growing table used while a model is built: open addressing over entries in slot form.
type pairSet struct {
	slots []uint64
	n     int
}

func newPairSet(capacity int) *pairSet {
	return &pairSet{slots: make([]uint64, 1<<bits.Len(uint(capacity*2+16)))}
}

func (s *pairSet) at(key uint64) int {
	mask := uint64(len(s.slots) - 1)
	i := key * 0x9e3779b97f4a7c15 >> 20 & mask
	// The empty word is free: key 0 with rank 0 cannot be told from it, so ranks are stored plus one.
	for s.slots[i] != 0 && s.slots[i]>>24 != key {
		i = (i + 1) & mask
	}
	return int(i)
}

func (s *pairSet) find(a, b uint32) uint32 {
	e := s.slots[s.at(pairKey(a, b))]
	if e == 0 {
		return noRank
	}
	return uint32(e)&noRank - 1
}

// put sets the rank of a pair; the caller keeps within the capacity.
func (s *pairSet) put(a, b, rank uint32) {
	i := s.at(pairKey(a, b))
	if s.slots[i] == 0 {
		s.n++
	}
	s.slots[i] = pairKey(a, b)<<24 | uint64(rank+1)
}

// entries returns the pairs in slot form, reusing the set's memory.
func (s *pairSet) entries() []uint64 {
	out := s.slots[:0]
	for _, e := range s.slots {
		if e != 0 {
			out = append(out, e-1)
		}
	}
	return out
}

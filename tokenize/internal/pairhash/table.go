// Package pairhash maps pairs of symbols to ranks by a perfect hash, for the engines of byte-pair
// encodings. A Table is immutable; any number of goroutines may read it.
package pairhash

import "math/bits"

// NoRank is the rank of a pair that never merges. NoSymbol has no pairs; it stands before and after
// a word.
const (
	NoRank   = 1<<24 - 1
	NoSymbol = 1<<20 - 1
)

// Table maps a pair of 20-bit symbols to its rank by a perfect hash: a lookup reads one small
// displacement and one slot, without probing. Its fields are exported for kernels in assembly. A
// slot holds left<<44 | right<<24 | rank. Unused slots hold NoSymbol twice, which no lookup of a
// real pair matches.
type Table struct {
	Mul         uint64
	BucketShift uint8
	SlotShift   uint8
	Disp        []uint16
	Slots       []uint64
}

// Key returns the upper part of a pair's slot.
func Key(a, b uint32) uint64 { return uint64(a)<<20 | uint64(b) }

// Find returns the rank of the pair, or NoRank.
func (t *Table) Find(a, b uint32) uint32 {
	key := uint64(a)<<20 | uint64(b)
	p := key * t.Mul
	e := t.Slots[uint32(p>>8)*uint32(t.Disp[p>>t.BucketShift])>>t.SlotShift]
	r := uint32(e) & NoRank
	if e>>24 != key {
		r = NoRank // a conditional move: the outcome is unpredictable
	}
	return r
}

// NewEmpty returns a table without pairs that has a slot for each pair of the table that these
// values are of: its Mul, the logarithm of its number of slots and its Disp. Put stores them.
func NewEmpty(mul uint64, slotBits int, disp []uint16) Table {
	t := Table{Mul: mul, BucketShift: uint8(64 - bits.Len(uint(len(disp)-1))), SlotShift: uint8(32 - slotBits),
		Disp: disp, Slots: make([]uint64, 1<<slotBits)}
	for i := range t.Slots {
		t.Slots[i] = emptySlot
	}
	return t
}

// Put stores an entry in slot form.
func (t *Table) Put(entry uint64) {
	p := (entry >> 24) * t.Mul
	t.Slots[uint32(p>>8)*uint32(t.Disp[p>>t.BucketShift])>>t.SlotShift] = entry
}

const emptySlot = uint64(NoSymbol)<<44 | uint64(NoSymbol)<<24 | NoRank

// New builds the table from entries in slot form; of equal pairs the last counts. It fails only for
// pairs crafted to collide under every multiplier tried.
func New(entries []uint64) (Table, bool) {
	sbits := max(bits.Len(uint(len(entries)+len(entries)/4)), 4)
	muls := [...]uint64{0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xc2b2ae3d27d4eb4f, 0xff51afd7ed558ccd}
	for try := range 2 * len(muls) {
		if t, ok := tryTable(entries, muls[try%len(muls)], sbits+try/len(muls)); ok {
			return t, true
		}
	}
	return Table{}, false
}

func tryTable(entries []uint64, mul uint64, sbits int) (Table, bool) {
	bbits := sbits - 2
	t := NewEmpty(mul, sbits, make([]uint16, 1<<bbits))
	// Counting sort by bucket, then buckets by size, largest first.
	start := make([]uint32, 1<<bbits+1)
	for _, e := range entries {
		start[(e>>24)*mul>>t.BucketShift]++
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
		b := (e >> 24) * mul >> t.BucketShift
		sorted[start[b]] = e
		start[b]++
	}
	// The end of a bucket is now known; its beginning moves up if pairs repeat.
	sizes := make([]uint8, len(t.Disp))
	var first [66]uint32 // first bucket of each size, once the larger sizes are counted
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
		if !t.displace(sorted[start[b]-n:start[b]], b) {
			return t, false
		}
	}
	return t, true
}

// lastOnly drops all but the last of equal pairs from a bucket and returns its new beginning.
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

// displace finds an odd displacement under which the entries of a bucket hit free slots, and stores them there.
func (t *Table) displace(entries []uint64, bucket uint32) bool {
	var at [64]uint32
next:
	for d := uint32(1); d < 1<<16; d += 2 {
		for i, e := range entries {
			s := uint32((e>>24)*t.Mul>>8) * d >> t.SlotShift
			if t.Slots[s] != emptySlot {
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
			t.Slots[at[i]] = e
		}
		t.Disp[bucket] = uint16(d)
		return true
	}
	return false
}

// Bytes returns the memory of the table.
func (t *Table) Bytes() int64 { return int64(len(t.Disp)*2 + len(t.Slots)*8) }

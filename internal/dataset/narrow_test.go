package dataset

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPutUint16s compares vectors of ids with one id at a time, for every length around theirs.
func TestPutUint16s(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		ids := make([]uint32, n)
		want := make([]byte, 0, 2*n)
		for i := range ids {
			ids[i] = random.Uint32N(1 << 16)
			want = binary.LittleEndian.AppendUint16(want, uint16(ids[i]))
		}
		got := make([]byte, 2*n)
		top := putUint16s(got, ids)
		if !slices.Equal(got, want) || n > 0 && top != slices.Max(ids) {
			t.Fatalf("%d ids: %x and top %d, want %x", n, got, top, want)
		}
		for i := range ids {
			large := slices.Clone(ids)
			large[i] = 1<<16 + random.Uint32N(1<<32-1<<16)
			if top := putUint16s(got, large); top != large[i] {
				t.Fatalf("%d ids with %d at %d: top %d", n, large[i], i, top)
			}
		}
	}
}

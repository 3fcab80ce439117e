package source

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/zeebo/xxh3"
)

// TestRecordsSum: the checksum of the records at a place is there until two records later, and after a group ended,
// whatever is asked for in between.
func TestRecordsSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base := checksum.Sum{1}
	for range 3000 {
		var s recordsSum
		var all []byte
		want := func(p []byte) checksum.Sum {
			if len(p) == 0 {
				return base
			}
			return base.Then(xxh3.Hash128(p).Bytes())
		}
		lent := make([]byte, 3000)
		placed, adds := want(nil), 0
		s.place()
		for range 1 + rng.IntN(12) {
			switch rng.IntN(6) {
			case 0:
				s.place()
				placed, adds = want(all), 0
			case 1:
				if got := s.placedAfter(base); got != placed {
					t.Fatal("the checksum of the place differs")
				}
			case 2:
				if got := s.after(base); got != want(all) {
					t.Fatal("the checksum differs")
				}
			case 3:
				if adds == 0 {
					s.reset()
					all = nil
				}
			default:
				if adds++; adds > 1 {
					s.place()
					placed, adds = want(all), 1
				}
				s.take()
				p := lent[:rng.IntN(len(lent))]
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				null := rng.IntN(2) == 0
				all = append(binary.LittleEndian.AppendUint64(all, uint64(len(p))), 0)
				if null {
					all[len(all)-1] = 1
				}
				all = append(all, p...)
				own := rng.IntN(2) == 0
				if s.add(p, null, !own); own {
					clear(p)
				}
			}
		}
	}
}

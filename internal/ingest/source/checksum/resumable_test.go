package checksum

import (
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"
)

// A sum that was written in any pieces, and saved and restored between any two, equals the
// library's.
func TestResumableSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 10_000)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	lengths := []int{0, 1, 16, 63, 64, 128, 129, 239, 240, 241, 255, 256, 1023, 1024, 1025, 1087, 1088, 2047, 2048,
		2049, 9999}
	var h Hasher
	for range 200 {
		lengths = append(lengths, rnd.IntN(len(data)))
	}
	for _, n := range lengths {
		s := NewResumable()
		h.Reset()
		for at := 0; at < n; {
			step := min(1+rnd.IntN(1+rnd.IntN(3000)), n-at)
			s.Write(data[at : at+step])
			h.Write(data[at : at+step])
			at += step
			next := NewResumable()
			if !next.RestoreState(s.AppendState(nil)) {
				t.Fatalf("%d of %d bytes: the state cannot be restored", at, n)
			}
			s = next
		}
		if got, want := s.Sum(), Sum(xxh3.Hash128(data[:n]).Bytes()); got != want || h.Sum() != want {
			t.Fatalf("%d bytes: %s, %s by a Hasher, want %s", n, got, h.Sum(), want)
		}
	}
	for _, state := range [][]byte{nil, make([]byte, 10), make([]byte, 5000)} {
		if NewResumable().RestoreState(state) {
			t.Errorf("a state of %d bytes was restored", len(state))
		}
	}
}

// Stripes that vectors take in equal those taken in a lane at a time, for as many as some blocks have and bytes after
// them.
func TestAccumulate(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	p := make([]byte, 2*sumBlock+3*sumStripe)
	for n := range len(p) + 1 {
		var got, want [8]uint64
		for i := range got {
			got[i] = rnd.Uint64()
		}
		for i := range p {
			p[i] = byte(rnd.Uint32())
		}
		want = got
		accumulate(&got, p[:n], sumSecret[:])
		accumulateGo(&want, p[:n], sumSecret[:])
		if got != want {
			t.Fatalf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

func FuzzResumable(f *testing.F) {
	f.Add([]byte("a"), uint16(0))
	f.Add(make([]byte, sumShort+1), uint16(1))
	f.Add(make([]byte, 2*sumBlock+sumStripe+1), uint16(sumBlock))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		at := min(int(cut), len(data))
		s := NewResumable()
		s.Write(data[:at])
		s.Write(data[at:])
		if got, want := s.Sum(), Sum(xxh3.Hash128(data).Bytes()); got != want {
			t.Fatalf("%d bytes, cut at %d: %s, want %s", len(data), at, got, want)
		}
	})
}

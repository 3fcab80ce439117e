package shard

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// firstBeyond finds what a plain loop finds, for every vocabulary and every place in a word and in a vector.
func TestFirstBeyond(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, width := range []int{2, 4} {
		vocabularies := []int{1, 2, 255, 256, 32767, 32768, 50257, 65535, 65536}
		if width == 4 {
			vocabularies = []int{65537, 1 << 20, 1<<31 - 1, 1 << 31}
		}
		for _, vocabulary := range vocabularies {
			for range 300 {
				n := rnd.IntN(100)
				raw, want := make([]byte, n*width), -1
				for i := range n {
					id := uint32(rnd.IntN(vocabulary))
					if rnd.IntN(60) == 0 {
						id = uint32(vocabulary) + uint32(rnd.IntN(3))
					}
					if width == 2 {
						id &= 0xffff
						binary.LittleEndian.PutUint16(raw[2*i:], uint16(id))
					} else {
						binary.LittleEndian.PutUint32(raw[4*i:], id)
					}
					if want < 0 && int(id) >= vocabulary {
						want = i
					}
				}
				if got := firstBeyond(raw, width, vocabulary); got != want {
					t.Fatalf("width %d, vocabulary %d, %x: %d, want %d", width, vocabulary, raw, got, want)
				}
			}
		}
	}
}

// FuzzFirstBeyond compares firstBeyond with a plain loop for any bytes.
func FuzzFirstBeyond(f *testing.F) {
	f.Add([]byte("ids of two or of four bytes each, enough for two vectors of them and some."), uint32(30000), false)
	f.Add(make([]byte, 100), uint32(1), true)
	f.Fuzz(func(t *testing.T, raw []byte, vocabulary uint32, wide bool) {
		width, n := 2, int(vocabulary%(1<<16))+1
		if wide {
			width, n = 4, int(vocabulary%(1<<31))+1
		}
		raw = raw[:len(raw)/width*width]
		want := -1
		for i := 0; i < len(raw)/width && want < 0; i++ {
			if idAt(raw, i, width) >= int64(n) {
				want = i
			}
		}
		if got := firstBeyond(raw, width, n); got != want {
			t.Fatalf("width %d, vocabulary %d, %x: %d, want %d", width, n, raw, got, want)
		}
	})
}

// BenchmarkFirstBeyond is what comparing a row's ids with the vocabulary costs.
func BenchmarkFirstBeyond(b *testing.B) {
	raw := make([]byte, 2*512)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if firstBeyond(raw, 2, 50257) >= 0 {
			b.Fatal("found one")
		}
	}
}

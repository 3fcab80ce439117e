package collate

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// One id outside the vocabulary, wherever it is among ids or labels of either width, is found by
// Close with its row; without it the batch is accepted.
func TestIDsOutsideTheVocabulary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for width, sizes := range map[int][]int{2: {1, 2, 255, 256, 50257, 65535, 65536},
		4: {1, 300, 65536, 65537, 151_936, 1<<31 - 1}} {
		put := func(dst []byte, id uint32) []byte {
			if width == 2 {
				return binary.LittleEndian.AppendUint16(dst, uint16(id))
			}
			return binary.LittleEndian.AppendUint32(dst, id)
		}
		limit := int64(1) << (8 * width)
		for _, size := range sizes {
			for range 200 {
				// A batch of legal ids, the last ones of the vocabulary often, and perhaps one that is not.
				rows := make([]testRow, 1+rng.IntN(5))
				for i := range rows {
					rows[i].Example = int64(100 + i)
					for _, list := range []*[]byte{&rows[i].IDs, &rows[i].Labels} {
						for range 1 + rng.IntN(40) {
							id := uint32(size - 1)
							if rng.IntN(2) == 0 {
								id = uint32(rng.IntN(size))
							}
							*list = put(*list, id)
						}
					}
				}
				bad, outside := -1, uint32(0)
				if int64(size) < limit && rng.IntN(2) == 0 {
					bad = rng.IntN(len(rows))
					outside = uint32(int64(size) + rng.Int64N(limit-int64(size)))
					if rng.IntN(2) == 0 {
						outside = uint32(size)
					}
					list := [][]byte{rows[bad].IDs, rows[bad].Labels}[rng.IntN(2)]
					copy(list[width*rng.IntN(len(list)/width):], put(nil, outside))
				}
				b := New(Options{TokenBytes: width, Vocabulary: size, Labels: Seq2Seq})
				for _, r := range rows {
					if err := add(b, r); err != nil {
						t.Fatal(err)
					}
				}
				err := b.Seal()
				var found *VocabularyError
				switch {
				case bad < 0 && err != nil:
					t.Fatalf("%d bytes, vocabulary %d: %v", width, size, err)
				case bad >= 0 && (!errors.As(err, &found) || found.ID != outside || found.Example != int64(100+bad) ||
					found.Vocabulary != size):
					t.Fatalf("%d bytes, vocabulary %d, id %d in row %d: %v", width, size, outside, bad, err)
				}
			}
		}
	}
}

// Ids that no row took are not compared: they are what a failed read left behind.
func TestOnlyTakenIDsAreCompared(t *testing.T) {
	b := New(Options{TokenBytes: 2, Vocabulary: 10})
	if err := b.Read(func(dst *Buffers) error {
		dst.IDs = append(dst.IDs, 1, 0, 2, 0, 0xff,
			0xff)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Take(Counts{IDs: 2}, Row{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Seal(); err != nil {
		t.Error(err)
	}
	if err := b.Take(Counts{IDs: 1}, Row{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Seal(); err == nil {
		t.Error("an id outside the vocabulary was accepted")
	}
}

func BenchmarkCompareIDs(b *testing.B) {
	ids := make([]byte, 32*512*2)
	b.SetBytes(int64(len(ids)))
	for b.Loop() {
		if anyAbove16(ids, 50257) {
			b.Fatal("0 is outside")
		}
	}
}

package bytebpe

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkZZShort(b *testing.B) {
	for _, name := range []string{"gpt2", "cl100k-hf"} {
		m := loadFixture(b, name).model
		for _, c := range corpora[2:] {
			docs := documents(readShared(b, c.path))
			seen := map[string]bool{}
			var ws [][]byte
			total, merges := 0, 0
			g := merger{m: m}
			for _, d := range docs {
				for i := 0; i < len(d); {
					j := m.tokenEnd(d, i)
					w := d[i:j]
					if len(w) <= 16 && !seen[string(w)] && m.vocab.find(w) == noSymbol {
						seen[string(w)] = true
						ws = append(ws, w)
						total += len(w)
						merges += len(w) - g.short(w)
					}
					i = j
				}
			}
			rand.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
			buf := []byte{}
			jobs := make([]mergeJobs, len(ws)/8)
			for i := range jobs {
				for j := range 8 {
					jobs[i][j].begin = uint32(len(buf))
					jobs[i][j].length = uint32(len(ws[i*8+j]))
					buf = append(buf, ws[i*8+j]...)
				}
			}
			buf = append(buf, make([]byte, 64)...)
			b.Run("asm"+name+"/"+c.key, func(b *testing.B) {
				for b.Loop() {
					for i := range jobs {
						g.mergeSome(buf, &jobs[i])
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ws)), "ns/word")
			})
			b.Run(name+"/"+c.key, func(b *testing.B) {
				for b.Loop() {
					for _, w := range ws {
						g.short(w)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ws)), "ns/word")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(merges), "ns/merge")
				b.ReportMetric(float64(total)/float64(len(ws)), "B/word")
			})
		}
	}
}

func BenchmarkZZClock(b *testing.B) {
	x := uint64(b.N)
	for b.Loop() {
		for range 1000 {
			x = x*3 + 1 // lea: 1-2 cycles; imul-free
			x ^= x >> 1
		}
	}
	_ = x
}

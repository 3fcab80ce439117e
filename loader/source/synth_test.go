package source

import (
	"testing"
)

func BenchmarkSynth(b *testing.B) {
	for _, kind := range []string{"synth://wikitext", "synth://recipes"} {
		b.Run(kind, func(b *testing.B) {
			r, err := openSet(b, Options{Args: []string{kind}}).Reader(Position{})
			if err != nil {
				b.Fatal(err)
			}
			var rec Record
			buf := make([]byte, 0, 64<<10)
			total := 0
			for b.Loop() {
				data, err := r.Next(buf[:0], &rec)
				if err != nil {
					b.Fatal(err)
				}
				total += len(data)
			}
			b.ReportAllocs()
			b.ReportMetric(float64(total)/1e6/b.Elapsed().Seconds(), "MB/s")
			b.ReportMetric(float64(total)/float64(b.N), "bytes/doc")
		})
	}
}

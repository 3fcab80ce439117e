package enginetest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/tokenize/internal/cputime"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// Speed measures the encoding of corpora by each of Goldens.
func (s *Suite[C, M, E]) Speed(b *testing.B) { s.each(b, speed) }

// Hostile measures the encoding of each of HostileTexts by each of Goldens.
func (s *Suite[C, M, E]) Hostile(b *testing.B) { s.each(b, hostile) }

func (s *Suite[C, M, E]) each(b *testing.B, measure func(*testing.B, tokenizer)) {
	for _, name := range s.Goldens {
		b.Run(name, func(b *testing.B) { measure(b, s.tokenizer(b, name)) })
	}
}

// Documents cuts text into runs of whole lines, at least 2 KiB each.
func Documents(text []byte) [][]byte {
	var docs [][]byte
	begin := 0
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
		if i-begin >= 2<<10 {
			docs = append(docs, text[begin:i])
			begin = i
		}
	}
	if begin < len(text) {
		docs = append(docs, text[begin:])
	}
	return docs
}

// speed measures the encoding of each corpus with a fresh Encoder (cold) and once more (warm), best
// of five, in MB of text per second of CPU time. It reports the time to make the Encoder
// separately.
func speed(b *testing.B, k tokenizer) {
	for _, c := range []struct{ name, files string }{
		{"wiki", "corpora/wikitext-2/test.txt corpora/wikitext-2/valid.txt"},
		{"peps", "corpora/prose/peps.txt"},
		{"tldr", "corpora/multilingual/tldr.txt"},
	} {
		var text []byte
		for _, f := range strings.Fields(c.files) {
			text = append(text, refdata.Read(b, f)...)
		}
		docs := Documents(text)
		b.Run(c.name, func(b *testing.B) {
			var cold, warm, made time.Duration
			ids := make([]uint32, 0, 1<<16)
			pass := func(e Encoder) time.Duration {
				start := cputime.Process()
				for _, d := range docs {
					ids = k.encode(e, ids[:0], d)
				}
				return cputime.Process() - start
			}
			for b.Loop() {
				for i := range 5 {
					start := cputime.Process()
					e := k.newEncoder(0)
					m := cputime.Process() - start
					x, y := pass(e), pass(e)
					if i == 0 || x < cold {
						cold = x
					}
					if i == 0 || y < warm {
						warm = y
					}
					if i == 0 || m < made {
						made = m
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(text))/1e6/cold.Seconds(), "cold-MB/cpu-s")
			b.ReportMetric(float64(len(text))/1e6/warm.Seconds(), "warm-MB/cpu-s")
			b.ReportMetric(made.Seconds()*1e3, "new-ms")
		})
	}
}

// hostile measures inputs that may take an engine more than linear time or space, in nanoseconds
// per byte, next to plain text.
func hostile(b *testing.B, k tokenizer) {
	for _, h := range HostileTexts(1 << 20) {
		b.Run(h.Name, func(b *testing.B) {
			e := k.newEncoder(0)
			var ids []uint32
			start := cputime.Process()
			for b.Loop() {
				ids = k.encode(e, ids[:0], h.Text)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64((cputime.Process()-start).Nanoseconds())/float64(b.N)/float64(len(h.Text)), "ns/B")
		})
	}
}

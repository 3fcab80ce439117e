package bytebpe

import (
	"bytes"
	"math"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// documents cuts text into runs of whole lines of at least 2 KiB.
func documents(text []byte) (docs [][]byte) {
	begin := 0
	for i, c := range text {
		if c == '\n' && i+1-begin >= 2048 {
			docs = append(docs, text[begin:i+1])
			begin = i + 1
		}
	}
	if begin < len(text) {
		docs = append(docs, text[begin:])
	}
	return docs
}

// threadSeconds is the processor time of this thread.
func threadSeconds() float64 {
	var t [2]int64
	const clockThread = 3
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThread, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return math.NaN()
	}
	return float64(t[0]) + float64(t[1])/1e9
}

func benchModel(b *testing.B, name string) *Model {
	switch name {
	case "cl100k":
		return loadRanks(b, "cl100k_base.tiktoken", CL100K)
	case "o200k":
		return loadRanks(b, "o200k_base.tiktoken", O200K)
	}
	return loadFixture(b, name).model
}

// BenchmarkCorpus measures MB of text per CPU-second: cold with a fresh encoder for each pass, warm with one that has seen the corpus.
func BenchmarkCorpus(b *testing.B) {
	for _, name := range []string{"gpt2", "cl100k-hf", "cl100k", "o200k"} {
		for _, c := range corpora {
			b.Run(name+"/"+c.key, func(b *testing.B) {
				m := benchModel(b, name)
				text := bytes.Clone(readShared(b, c.path))
				docs := documents(text)
				b.SetBytes(int64(len(text)))
				ids := make([]uint32, 0, 64<<10)
				cold, warm := math.Inf(1), math.Inf(1)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				for b.Loop() {
					e := m.NewEncoder(0)
					for pass := range 2 {
						t := threadSeconds()
						for _, d := range docs {
							ids = e.Append(ids[:0], d, true, true)
						}
						s := threadSeconds() - t
						if pass == 0 {
							cold = min(cold, s)
						} else {
							warm = min(warm, s)
						}
					}
				}
				b.ReportMetric(float64(len(text))/1e6/cold, "cold-MB/s")
				b.ReportMetric(float64(len(text))/1e6/warm, "warm-MB/s")
			})
		}
	}
}

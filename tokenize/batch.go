package tokenize

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// BatchOptions configures EncodeBatch.
type BatchOptions struct {
	// Workers is how many goroutines encode (default GOMAXPROCS).
	Workers int
	// Specials puts the tokenizer's special tokens around each text.
	Specials bool
	// Encoder configures the goroutines' encoders.
	Encoder EncoderOptions
}

// batchStride is how many texts a goroutine takes at once.
const batchStride = 16

// EncodeBatch encodes texts on several goroutines. Result i holds the ids of text i; it is nil if
// o.Encoder.MaxNormalized refuses the text.
func (t *Tokenizer) EncodeBatch(texts []string, o BatchOptions) [][]uint32 {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	ids := make([][]uint32, len(texts))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(o.Workers, (len(texts)+batchStride-1)/batchStride) {
		wg.Go(func() {
			enc := t.NewEncoder(o.Encoder)
			for {
				from := int(next.Add(batchStride)) - batchStride
				if from >= len(texts) {
					return
				}
				for i := from; i < min(from+batchStride, len(texts)); i++ {
					ids[i] = enc.encode(texts[i], o.Specials)
				}
			}
		})
	}
	wg.Wait()
	return ids
}

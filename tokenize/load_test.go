package tokenize

import (
	"testing"

	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// BenchmarkLoad measures how long it takes until the first text can be encoded.
func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"gpt2", "roberta", "cl100k-hf", "phi-3", "t5-small", "bert-uncased",
		"gpt2.tiktoken", "cl100k_base.tiktoken", "llama2.model"} {
		b.Run(name, func(b *testing.B) {
			path := refdata.Path(b, "tokenizers/"+name)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package setup

import (
	"testing"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/pack"
)

// TestExamplesAhead: which documents go to val depends on these numbers, so that they never change.
func TestExamplesAhead(t *testing.T) {
	for _, c := range []struct {
		documents, text int64
		o               option.Settings
		want            int64
	}{
		{0, 0, option.Settings{}, 0},
		{100, 0, option.Settings{}, 64},
		{0, 400 * 1000, option.Settings{}, 655},
		{0, 400 * 1000, option.Settings{Overflow: example.Truncate}, 81},
		{0, 400 * 800 * 3, option.Settings{Overflow: example.Drop}, 163},
		{0, 400 * 100, option.Settings{Pack: pack.BFD}, 81},
		{0, 399, option.Settings{}, 1},
		{100, 0, option.Settings{MaxExamples: 20, MaxValExamples: 5}, 25},
		{0, 0, option.Settings{MaxExamples: 20}, 20},
		{1000, 0, option.Settings{MaxTokens: 999}, 9},
		{1000, 0, option.Settings{MaxBytes: 400 * 7}, 7},
		{1000, 0, option.Settings{MaxBytes: 3200 * 7, Overflow: example.Drop}, 7},
		{1000, 0, option.Settings{MaxBytes: 1}, 1},
	} {
		o := option.Options{Settings: c.o}
		o.MaxLength = 100
		if o.Overflow == "" {
			o.Overflow = example.Chunk
		}
		if o.Pack == "" {
			o.Pack = pack.None
		}
		if got := (ahead{c.documents, c.text}).examples(&o); got != c.want {
			t.Errorf("%d documents, %d bytes, %+v: %d, want %d", c.documents, c.text, c.o, got, c.want)
		}
	}
}

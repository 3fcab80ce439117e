package bytebpe

import (
	"maps"
	"slices"
	"testing"
)

// TestHostileIsLinear counts the work on text made to be slow: each byte is scanned and merged a
// few times at most, however long the word it is in, and nothing is kept but the encoder's own
// memory.
func TestHostileIsLinear(t *testing.T) {
	inputs := hostile()
	models := map[string]*Model{"gpt2": loadRanks(t, "r50k_base.tiktoken", GPT2),
		"cl100k": loadRanks(t, "cl100k_base.tiktoken", CL100K), "o200k": loadRanks(t, "o200k_base.tiktoken", O200K)}
	levels := kernelLevels()
	if testing.Short() {
		levels = levels[len(levels)-1:]
	}
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			defer useKernels(level)()
			mergedPerByte := 3
			if level != "avx512" {
				// The windows of long words are merged, and counted, like any other word: two for each byte,
				// before what is merged again.
				mergedPerByte = 4
			}
			checkWork(t, models, inputs, mergedPerByte)
		})
	}
}

func checkWork(t *testing.T, models map[string]*Model, inputs map[string][]byte, mergedPerByte int) {
	for i, name := range slices.Sorted(maps.Keys(models)) {
		e := models[name].NewEncoder(0)
		for j, input := range slices.Sorted(maps.Keys(inputs)) {
			if testing.Short() && (i+j)%len(models) > 0 { // each input with one of them
				continue
			}
			text := inputs[input]
			scanned, merged := e.scanned, e.merger.work+e.heap.work
			ids := e.Append(nil, text, true, true)
			scanned, merged = e.scanned-scanned, e.merger.work+e.heap.work-merged
			if len(ids) == 0 {
				t.Errorf("%s, %s: no ids", name, input)
			}
			if limit := 5 * len(text) / 2; scanned > limit {
				t.Errorf("%s, %s: %d bytes scanned for %d", name, input, scanned, len(text))
			}
			if limit := mergedPerByte * len(text); merged > limit {
				t.Errorf("%s, %s: %d symbols merged for %d bytes", name, input, merged, len(text))
			}
			if got := e.bytes(); got > DefaultCacheBytes {
				t.Errorf("%s, %s: the encoder holds %d bytes", name, input, got)
			}
		}
	}
}

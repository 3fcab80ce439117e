package export

import (
	"encoding/json"
	"fmt"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/shard"
)

// notes returns what a reader of the files should know about the dataset and cannot see in them.
func notes(m *shard.Manifest, o *Options) []string {
	var notes []string
	if o.stale != "" {
		notes = append(notes, o.stale)
	}
	if m.Schema.LossMask {
		for _, f := range o.Formats {
			if !holdsMask(f) {
				notes = append(notes, f+" has no loss masks: every token of it is trained on")
			}
		}
	}
	var settings struct {
		SpecialTokens string `json:"special-tokens"`
	}
	if json.Unmarshal(m.Settings, &settings) == nil && settings.SpecialTokens == "chunk" {
		notes = append(notes, "the build put special tokens around each chunk of a document, "+
			"so joined chunks have them in their middle")
	}
	if n := counts.Of(m.Counters, m.Dropped).WithoutTarget; n > 0 {
		notes = append(notes, fmt.Sprintf("examples that the build left out because no token of the target "+
			"was in them: %d; documents that were cut lack these parts", n))
	}
	return notes
}

package ingest

import (
	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/shard"
)

// Summary is what a build made.
type Summary struct {
	Out    string         `json:"out"`
	Splits []SplitSummary `json:"splits"`
	counts.Counts
	Packing *PackSummary   `json:"packing,omitempty"` // nil where rows are not packed
	Formats map[string]int `json:"formats,omitempty"` // inputs by their format
	// the budget that ended the build, or "the sources ended"
	Stopped         fault.Text   `json:"stopped"`
	Notes           []fault.Text `json:"notes,omitempty"`
	Warnings        []fault.Text `json:"warnings,omitempty"`
	Added           int64        `json:"added_examples,omitempty"` // of Append; Splits are those of the whole dataset
	AlreadyBuilt    bool         `json:"already_built,omitempty"`
	Resumed         bool         `json:"resumed,omitempty"`
	ResumedAt       int64        `json:"resumed_at,omitempty"` // examples that earlier runs had written
	Partition       string       `json:"partition,omitempty"`  // where only one of a plan was built, such as "3/16"
	Seconds         float64      `json:"seconds"`              // of this run
	MBPerSecond     float64      `json:"mb_per_s"`
	TokensPerSecond float64      `json:"tokens_per_s"`
	PeakRSSBytes    int64        `json:"peak_rss_bytes"`
	CapBytes        int64        `json:"memory_cap_bytes"`
}

// SplitSummary is one split of a Summary.
type SplitSummary struct {
	Name     string `json:"name"`
	Examples int64  `json:"examples"`
	Tokens   int64  `json:"tokens"`
	Shards   int    `json:"shards"`
	// Fill is the part of packed rows that tokens take; 0 where rows are not packed.
	Fill float64 `json:"fill,omitempty"`
}

func (s *Summary) addSplits(m *shard.Manifest) {
	for i, split := range m.Splits {
		s.Splits = append(s.Splits, SplitSummary{
			Name: split.Name, Examples: split.Examples, Tokens: split.Tokens + split.LabelTokens,
			Shards: split.NumShards(), Fill: Fill(m, &m.Splits[i]),
		})
	}
}

package report

import (
	"cmp"
	"encoding/json"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// Summary is what a build made.
type Summary struct {
	Out    string         `json:"out"`
	Splits []SplitSummary `json:"splits"`
	counts.Counts
	Packing *PackSummary   `json:"packing,omitempty"` // nil where rows are not packed
	Formats map[string]int `json:"formats,omitempty"` // inputs by their format
	// the token that ends each document, with its id; "" where none does or a chat template writes it
	DocumentEnd string `json:"document_end,omitempty"`
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

// Sums returns the examples and tokens of all splits.
func (s *Summary) Sums() (examples, tokens int64) {
	for _, split := range s.Splits {
		examples += split.Examples
		tokens += split.Tokens
	}
	return examples, tokens
}

// AddSplits adds the splits of a manifest.
func (s *Summary) AddSplits(m *shard.Manifest) {
	for i, split := range m.Splits {
		s.Splits = append(s.Splits, SplitSummary{
			Name: split.Name, Examples: split.Examples, Tokens: split.Tokens + split.LabelTokens,
			Shards: split.NumShards(), Fill: Fill(m, &m.Splits[i]),
		})
	}
}

// PackSummary is what packing made of the documents.
type PackSummary struct {
	Policy        pack.Policy `json:"policy"`
	Length        int         `json:"length"`         // tokens of a full row
	DroppedTokens int64       `json:"dropped_tokens"` // of text; special tokens are not counted
	Truncated     int64       `json:"truncated"`      // documents that were cut to Length
}

// fill returns the part of the rows' room that tokens take.
func (p *PackSummary) fill(s *shard.SplitInfo) float64 {
	return float64(s.Tokens) / (float64(s.Examples) * float64(p.Length))
}

// Packed describes how a dataset was packed; nil if it was not.
func Packed(m *shard.Manifest) *PackSummary {
	var settings struct {
		Pack      pack.Policy `json:"pack"`
		MaxLength int         `json:"max-length"`
	}
	if !m.Schema.Segments || json.Unmarshal(m.Settings, &settings) != nil || settings.MaxLength < 1 {
		return nil
	}
	c := counts.Of(m.Counters, m.Dropped)
	return &PackSummary{Policy: settings.Pack, Length: settings.MaxLength,
		DroppedTokens: *cmp.Or(c.DroppedTokens, new(int64)), Truncated: c.Truncated}
}

// Fill returns the part of a packed split's rows that tokens take; 0 for a split that is not
// packed.
func Fill(m *shard.Manifest, s *shard.SplitInfo) float64 {
	if p := Packed(m); p != nil {
		return p.fill(s)
	}
	return 0
}

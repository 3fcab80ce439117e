// Package report is what a build says of itself: how far it is while it runs, what it made, and
// sentences about what it left out, cut or skipped. It is made of counts and manifests, and knows
// nothing of how they came about.
package report

import (
	"cmp"
	"encoding/json"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// Summary is what a build made. Package loader has the same fields and comments.
type Summary struct {
	// Out is the dataset folder.
	Out string `json:"out"`
	// Splits are the dataset's splits, "train" first.
	Splits []SplitSummary `json:"splits"`
	counts.Counts
	// Packing is how rows were packed; nil if they were not.
	Packing *PackSummary `json:"packing,omitempty"`
	// Formats counts the inputs by their format.
	Formats map[string]int `json:"formats,omitempty"`
	// DocumentEnd is the token that ends each document, with its id; "" if none does or a chat template writes it.
	DocumentEnd string `json:"document_end,omitempty"`
	// Stopped names the budget that ended the build, or says that the sources ended.
	Stopped fault.Text `json:"stopped"`
	// Notes are sentences about what was cut, left out or found.
	Notes []fault.Text `json:"notes,omitempty"`
	// Warnings are sentences about what is probably wrong with the sources.
	Warnings []fault.Text `json:"warnings,omitempty"`
	// Added counts the examples that Append added; Splits are those of the whole dataset.
	Added int64 `json:"added_examples,omitempty"`
	// AlreadyBuilt reports that the folder held the same dataset, so that nothing was done.
	AlreadyBuilt bool `json:"already_built,omitempty"`
	// Resumed reports that an earlier run of the same build was continued.
	Resumed bool `json:"resumed,omitempty"`
	// ResumedAt counts the examples that earlier runs had written.
	ResumedAt int64 `json:"resumed_at,omitempty"`
	// Partition names the part of a plan that was built, such as "3/16".
	Partition string `json:"partition,omitempty"`
	// Seconds is how long this run took.
	Seconds float64 `json:"seconds"`
	// MBPerSecond is the speed of this run, in millions of bytes of text a second.
	MBPerSecond float64 `json:"mb_per_s"`
	// TokensPerSecond is the speed of this run.
	TokensPerSecond float64 `json:"tokens_per_s"`
	// PeakRSSBytes is the most memory that the process held; 0 if the system has no figure.
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
	// CapBytes is the memory cap.
	CapBytes int64 `json:"memory_cap_bytes"`
}

// SplitSummary is one split of a Summary.
type SplitSummary struct {
	// Name is "train" or "val".
	Name string `json:"name"`
	// Examples counts rows.
	Examples int64 `json:"examples"`
	// Tokens counts tokens, labels included.
	Tokens int64 `json:"tokens"`
	// Shards counts files.
	Shards int `json:"shards"`
	// Fill is the share of packed rows that tokens take; 0 if rows are not packed.
	Fill float64 `json:"fill,omitempty"`
	// LossTokens counts the tokens that carry loss; nil if that is unknown.
	LossTokens *int64 `json:"loss_tokens"`
	// LossShare is their share of Tokens; nil if that is unknown.
	LossShare *float64 `json:"loss_share"`
	// Sources is what each source gave, in their order; nil in datasets of earlier versions.
	Sources []shard.SourceCounts `json:"sources,omitempty"`
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
	for i := range m.Splits {
		split := &m.Splits[i]
		one := SplitSummary{Name: split.Name, Examples: split.Examples, Tokens: split.Tokens + split.LabelTokens,
			Sources: split.Sources, Shards: split.NumShards(), Fill: Fill(m, split)}
		one.LossTokens, one.LossShare = m.Loss(split)
		s.Splits = append(s.Splits, one)
	}
}

// PackSummary is what packing made of the documents.
type PackSummary struct {
	// Policy is how rows were filled.
	Policy pack.Policy `json:"policy"`
	// Length is the number of tokens of a full row.
	Length int `json:"length"`
	// DroppedTokens counts tokens of text that were left out, special tokens apart.
	DroppedTokens int64 `json:"dropped_tokens"`
	// Truncated counts documents that were cut to Length.
	Truncated int64 `json:"truncated"`
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

// Fill returns the share of a packed split's rows that tokens take; 0 for a split that is not packed.
func Fill(m *shard.Manifest, s *shard.SplitInfo) float64 {
	if p := Packed(m); p != nil {
		return float64(s.Tokens) / (float64(s.Examples) * float64(p.Length))
	}
	return 0
}

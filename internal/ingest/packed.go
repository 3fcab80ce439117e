package ingest

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// overflowOf returns what a policy does with longer documents.
func overflowOf(p pack.Policy) example.Overflow {
	if p == pack.BFD {
		return example.Truncate
	}
	return example.Chunk
}

// checkPack checks the options that concern packing.
func (o Options) checkPack() error {
	if o.PackWindow < 0 {
		return fault.Kindf(fault.Usage, "PackWindow %d: must be at least 0", o.PackWindow)
	}
	if o.Pack == pack.None {
		return nil
	}
	if o.Overflow != overflowOf(o.Pack) {
		does := map[pack.Policy]fault.Text{
			pack.Wrapped:  fault.Textf("cuts documents wherever a row ends"),
			pack.BFD:      fault.Textf("truncates longer documents; {pack} bfd_split splits them"),
			pack.BFDSplit: fault.Textf("splits longer documents; {pack} bfd truncates them"),
		}[o.Pack]
		return fault.BadOption("overflow", string(o.Overflow), "{pack} %s %v; leave {overflow} out",
			o.Pack, does)
	}
	if o.Pack == pack.Wrapped && o.SpecialTokens == SpecialOfChunk {
		return fault.BadOption("special-tokens", string(o.SpecialTokens),
			"{pack} wrapped cuts documents wherever a row ends, so that they have no chunks; "+
				"leave {special-tokens} out")
	}
	if o.MaxLength > pack.MaxLength {
		return fault.BadOption("max-length", o.MaxLength, "must be at most %d", pack.MaxLength)
	}
	return nil
}

// checkPackable returns an error for rows that have a target in a column of its own, which cannot be packed.
func (b *build) checkPackable() error {
	if b.opts.Pack == pack.None || !b.hasTarget() || b.opts.CausalPairs {
		return nil
	}
	return fault.BadOption("pack", string(b.opts.Pack),
		"prompts with targets in a column of their own cannot share rows; "+
			"put both into one row with {causal-pairs}, or leave {pack} out")
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

// cutRow shortens a row to its first n tokens.
func cutRow(row *shard.Example, n int64) {
	row.InputIDs = row.InputIDs[:n]
	if row.LossMask != nil {
		row.LossMask = row.LossMask[:n]
	}
	for i, length := range row.Segments {
		if n <= int64(length) {
			row.Segments[i] = int32(n)
			row.Segments = row.Segments[:i+1]
			return
		}
		n -= int64(length)
	}
}

// whyPacking describes the memory of packing.
func whyPacking(o *Options) string {
	if o.Pack == pack.Wrapped {
		return "the row that is being filled"
	}
	return fmt.Sprintf("windows of %d documents or %d tokens, packed by %s", maxPieces(o.MaxLength),
		o.window(), o.Pack)
}

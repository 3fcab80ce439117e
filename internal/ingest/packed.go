package ingest

import (
	"fmt"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// checkPackable returns an error for rows that have a target in a column of its own, which cannot be packed.
func (b *build) checkPackable() error {
	if b.opts.Pack == pack.None || !b.hasTarget() || b.opts.CausalPairs {
		return nil
	}
	return fault.BadOption("pack", string(b.opts.Pack),
		"prompts with targets in a column of their own cannot share rows; "+
			"put both into one row with {causal-pairs}, or leave {pack} out")
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
func whyPacking(o *option.Options) string {
	if o.Pack == pack.Wrapped {
		return "the row that is being filled"
	}
	return fmt.Sprintf("windows of %d documents or %d tokens, packed by %s", maxPieces(o.MaxLength),
		windowTokens(&o.Settings), o.Pack)
}

package ingest

import (
	"fmt"

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

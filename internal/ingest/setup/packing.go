package setup

import (
	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/rows"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// checkPackable returns an error for rows that have a target in a column of its own, which cannot be packed.
func (p *Prepared) checkPackable() error {
	if p.Options.Pack == pack.None || !p.HasTarget() || p.Options.CausalPairs {
		return nil
	}
	return fault.BadOption("pack", string(p.Options.Pack),
		"prompts with targets in a column of their own cannot share rows; "+
			"put both into one row with {causal-pairs}, or leave {pack} out")
}

// PackConfig returns how documents share rows.
func (p *Prepared) PackConfig(schema shard.Schema) rows.Config {
	o := p.Options
	return rows.Config{Policy: o.Pack, Length: o.MaxLength, Window: rows.WindowTokens(o.PackWindow, o.MaxLength),
		IDWidth: schema.IDWidth(), Masked: schema.LossMask, Suffix: len(p.CutterOptions().Suffix)}
}

// packingMemory returns the share of the memory cap that packing takes.
func (p *Prepared) packingMemory(schema shard.Schema) budget.Share {
	c, splits := p.PackConfig(schema), int64(1)
	if p.Options.MaxValExamples > 0 || len(p.Options.ValSources) > 0 {
		splits++
	}
	return budget.Share{Name: "packing", Bytes: c.MemoryBytes(splits), Why: c.Why()}
}

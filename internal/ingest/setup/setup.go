// Package setup opens and checks everything that can be wrong before the first byte of a build is written:
//
//	options -> tokenizer -> filters -> template -> sources -> chat renderer -> schema -> memory plan
//
// Open returns all of it as one value, which a build takes as it is. Nothing here runs a build, or knows where
// its rows go; what the place of the rows decides about the sources comes in as Reading, and what it needs of
// the memory as Needs.
package setup

import (
	"context"
	"errors"
	"runtime"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// The phases of a build: first the sources, then, where given, the sources of the split val.
const (
	Train = iota
	Val
)

// Prepared is what a build is made of.
type Prepared struct {
	// Options are the build's. Where the records are conversations, EOS is set: their template ends them.
	Options   *option.Options
	Tokenizer *tokenize.Tokenizer
	Ends      Ends
	Cutter    *example.Cutter // for the flusher
	Filter    *filter.Filter
	Templates example.Templates
	Phases    []Phase
	Chat      *work.Conversations    // nil if no input holds conversations
	Shards    dataset.BuilderOptions // without settings
	Memory    *MemoryPlan            // nil before DivideMemory
	Ledger    *budget.Ledger         // nil before DivideMemory

	reading Reading
}

// Phase is one set of sources and what turns its records into text.
type Phase struct {
	Set       *source.Set
	Options   source.Options
	Formatter *example.Formatter
}

// Reading is what a build decides about its sources before they are opened.
type Reading struct {
	Narrow    func(phase int, o *source.Options)      // leaves out some of a phase; nil leaves all in
	Explain   func(err error) error                   // returns a better error of opening a phase, or err; may be nil
	Revision  func(repository string) (commit string) // the commit that an earlier run read; "" for none
	Partition bool                                    // the build is one of a plan's
	Resumes   bool                                    // the same command resumes from a checkpoint
}

// Open opens the tokenizer and the sources of a build, and checks its options against them. Its errors say what
// to do.
func Open(ctx context.Context, o *option.Options, r Reading) (*Prepared, error) {
	p := &Prepared{Options: o, reading: r}
	for _, step := range []func(context.Context) error{
		p.checkMap, p.openTokenizer, p.openCutter, p.openFilter, p.checkOut, p.readTemplates, p.openSources, p.openChat,
		p.checkFields, p.checkTargets,
	} {
		if err := step(ctx); err != nil {
			if closeErr := p.Close(); closeErr != nil {
				err = errors.Join(err, closeErr)
			}
			return nil, err
		}
	}
	cores := runtime.GOMAXPROCS(0)
	p.Shards = dataset.BuilderOptions{
		Schema: shard.Schema{VocabSize: p.Tokenizer.VocabSize(), Labels: p.HasTarget() && !o.CausalPairs,
			LossMask: o.CausalPairs || p.Chat != nil && p.Chat.Masked(), Segments: o.Pack != pack.None},
		ShardBytes: o.ShardBytes, MaxRowTokens: o.MaxLength, Overwrite: o.Overwrite,
		// On more cores the flusher would be alone at all of that.
		MayChange: mayChange, Crowded: cores <= 2 && o.Workers >= cores,
	}
	return p, nil
}

// Close releases the scratch files of the sources.
func (p *Prepared) Close() error {
	var errs []error
	for _, phase := range p.Phases {
		errs = append(errs, phase.Set.Close())
	}
	return errors.Join(errs...)
}

// Facts are those of an error that ends the build.
func (p *Prepared) Facts() advice.Facts {
	f := advice.Facts{Options: p.Options, Partition: p.reading.Partition, Resumes: p.reading.Resumes}
	for i := range p.Phases {
		f.Sets, f.Fields = append(f.Sets, p.Phases[i].Set), p.Phases[0].Options.Fields
	}
	return f
}

package setup

import (
	"context"
	"math"
	"math/bits"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
)

// lookAhead times the wanted number of held-out examples is the most that a look at the beginning of the sources
// counts. What comes after does not change which documents are held out.
const lookAhead = 32

// An ahead is what a look at the beginning of the sources found: documents and bytes of their text, which depend
// less on the format of the files than their size does.
type ahead struct{ documents, text int64 }

// examples returns a lower bound, by rule of thumb, of the examples that a build makes of this and of what follows; 0
// if nothing bounds them.
//
// An example holds at most maxLength tokens, a token of text some four bytes; documents that are
// truncated or dropped give one example each whatever their size, so there the estimate is lower.
//
// The number is a power of two, so that a record that is fixed under an unfinished build chooses the same documents.
func (a ahead) examples(o *option.Options) int64 {
	const bytesPerToken = 4
	perExample := int64(o.MaxLength) * bytesPerToken
	if o.Overflow != example.Chunk {
		perExample *= 8
	}
	all := a.text / perExample
	if o.Pack == pack.None {
		all = max(all, a.documents)
	}
	least := int64(math.MaxInt64)
	if all > 0 {
		least = 1 << (bits.Len64(uint64(all)) - 1)
	}
	if o.MaxExamples > 0 {
		least = min(least, o.MaxExamples+o.MaxValExamples)
	}
	if o.MaxTokens > 0 {
		least = min(least, o.MaxTokens/int64(o.MaxLength))
	}
	if o.MaxBytes > 0 {
		least = min(least, o.MaxBytes/perExample)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return max(1, least)
}

// ExpectedExamples returns a lower bound of the examples that a build can make, as far as it matters for so many
// wanted ones; 0 if nothing bounds them. It reads the beginning of the sources.
func (p *Prepared) ExpectedExamples(ctx context.Context, wanted int64) (int64, error) {
	var a ahead
	o, set := p.Options, p.Phases[0].Set
	enough, allowed := min(wanted, math.MaxInt64/lookAhead)*lookAhead, a.examples(o) // what budgets allow
	if allowed > 0 {
		enough = min(enough, allowed)
	}
	if o.Pack != pack.None && !p.looksAtText() {
		return allowed, nil
	}
	for i := 0; i < set.Len() && a.examples(o) < enough; i++ {
		in, err := set.Input(i)
		if err != nil {
			return 0, err
		}
		if !in.Rereadable() {
			return allowed, nil
		}
		if p.lookInto(ctx, set, i, &a, enough); ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return min(enough, a.examples(o)), nil
}

// looksAtText reports whether the text of documents is known before the stages of a build: neither a chat template nor
// a command makes it.
func (p *Prepared) looksAtText() bool { return p.Chat == nil && p.Options.Map == "" }

// lookInto adds the documents of an input until there are enough. What cannot be read ends it: the build meets it
// too, and knows what to do about it.
func (p *Prepared) lookInto(ctx context.Context, set *source.Set, i int, a *ahead, enough int64) {
	reader, err := set.FirstRecords(i)
	if err != nil {
		return
	}
	defer reader.Close()
	w := p.Phases[0].Formatter.NewWorker().StopAt(ctx.Done())
	var text example.Formatted
	var raw []byte
	for d := new(job.Document); ctx.Err() == nil; {
		if raw, err = reader.Next(raw[:0], &d.Record); err != nil {
			return
		}
		if d.Last {
			a.documents += d.Rows
		}
		if d.Err == nil && !d.Skipped && p.looksAtText() && w.Format(&text, d.Layout(), raw) == nil {
			a.text += int64(len(text.Prompt) + len(text.Target))
		}
		if d.Last && a.examples(p.Options) >= enough {
			return
		}
	}
}

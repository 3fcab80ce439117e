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

// An ahead is what a look at the beginning of the sources found: bytes of text, a line break after each document as in
// a text file, or documents where a chat template or a command makes their text. Unlike the size of the files, neither
// depends on their format.
type ahead struct{ documents, text int64 }

// examples returns a lower bound, by rule of thumb, of the examples that a build makes of this and of what follows; 0
// if nothing bounds them.
//
// An example holds at most maxLength tokens, a token of text some four bytes; documents that are
// truncated or dropped give one example each whatever their size, so there the estimate is lower.
//
// What was found counts as its power of two, so that a record that is fixed under an unfinished build chooses the same
// documents.
func (a ahead) examples(o *option.Options) int64 {
	const bytesPerToken = 4
	perExample := int64(o.MaxLength) * bytesPerToken
	if o.Overflow != example.Chunk {
		perExample *= 8
	}
	least := int64(math.MaxInt64)
	switch {
	case a.text > 0:
		least = powerOfTwo(a.text) / perExample
	case a.documents > 0:
		least = powerOfTwo(a.documents)
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

// powerOfTwo returns the largest power of two that is not above n, which is above 0.
func powerOfTwo(n int64) int64 { return 1 << (bits.Len64(uint64(n)) - 1) }

// ExpectedExamples returns a lower bound of the examples that a build can make, as far as it matters for so many
// wanted ones; 0 if nothing bounds them. It reads the beginning of the sources, unless their size says how much text
// they hold.
func (p *Prepared) ExpectedExamples(ctx context.Context, wanted int64) (int64, error) {
	var a ahead
	o, set := p.Options, p.Phases[0].Set
	enough, allowed := min(wanted, math.MaxInt64/lookAhead)*lookAhead, a.examples(o) // what budgets allow
	if allowed > 0 {
		enough = min(enough, allowed)
	}
	if text, plain := set.TextBytes(); plain && p.looksAtText() {
		return ahead{text: text}.examples(o), nil
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
		switch {
		case !p.looksAtText():
			if d.Last {
				a.documents += d.Rows
			}
		case d.Err == nil && !d.Skipped && w.Format(&text, d.Layout(), raw) == nil:
			a.text += int64(len(text.Prompt) + len(text.Target) + len("\n"))
		}
		if d.Last && a.examples(p.Options) >= enough {
			return
		}
	}
}

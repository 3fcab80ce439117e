package plan

import (
	"context"
	"sync/atomic"

	"github.com/dsload/dsload/internal/ingest/source"
	"golang.org/x/sync/errgroup"
)

// If no document decides about later ones, a plan only needs to know how many documents each input
// holds and where it can be cut. Inputs are then counted independently, several at once: lines at
// the speed of memory, files of columns by their metadata, others by their framers. The wanted cuts
// are known before, since they depend on sizes alone.

// A wantedCut is where a partition should begin.
type wantedCut struct {
	offset int64   // in the input; -1 for the beginning of the next one
	text   float64 // estimated text before it
}

// cuts returns where partitions should begin in an input, or right after it. before is the estimated text before the input.
func (s *Scan) cuts(l *source.Listed, before float64) (cuts []wantedCut) {
	end := before + float64(max(0, l.TextBytes))
	for s.marks+1 < s.plan.Partitions && s.target <= end {
		w := wantedCut{offset: -1, text: end}
		if l.Cuttable() {
			w = wantedCut{offset: max(1, l.OffsetOf(s.target-before)), text: s.target}
		}
		cuts = append(cuts, w)
		s.mark(w.text)
	}
	return cuts
}

// Count lists and counts the inputs of the next phase, several at once, and takes the results in order. It returns the
// position after the last. progress is called with bytes that were read, by several goroutines.
func (s *Scan) Count(ctx context.Context, set *source.Set, readers int, progress func(n int64)) (end source.Position, err error) {
	phase := len(s.plan.Phases)
	if err := s.list(set); err != nil {
		return end, err
	}
	inputs := s.plan.Phases[phase].Inputs
	wanted := make([][]wantedCut, len(inputs))
	before := s.base
	for i := range inputs {
		wanted[i] = s.cuts(&inputs[i], before)
		before += float64(max(0, inputs[i].TextBytes))
	}
	counted := make([]*source.Counted, len(inputs))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(readers, len(inputs)) {
		group.Go(func() error {
			buf := make([]byte, source.CountBytes)
			for i := int(next.Add(1)) - 1; i < len(inputs); i = int(next.Add(1)) - 1 {
				var offsets []int64
				for _, w := range wanted[i] {
					if w.offset >= 0 {
						offsets = append(offsets, w.offset)
					}
				}
				c, err := set.Count(ctx, i, source.CountOptions{Cuts: offsets, Ahead: len(inputs) < readers, Buffer: buf,
					Progress: progress})
				if err != nil {
					return err
				}
				counted[i] = c
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return end, err
	}
	return s.joinPhase(phase, set, wanted, counted)
}

// joinPhase numbers the documents of a phase's inputs and turns the cuts into partitions.
func (s *Scan) joinPhase(phase int, set *source.Set, wanted [][]wantedCut, counted []*source.Counted) (end source.Position,
	err error) {
	tally, err := set.Tally()
	if err != nil {
		return end, err
	}
	inputs := s.plan.Phases[phase].Inputs
	var spans []source.Span
	for i, c := range counted {
		first := tally.Position().Ordinal
		for k, w := range wanted[i] {
			at, text := source.Mark{Input: i + 1, Ordinal: first + c.Documents}, s.base+float64(inputs[i].TextBytes)
			if w.offset >= 0 && k < len(c.Marks) {
				at = c.Marks[k]
				at.Input, at.Ordinal = i, first+at.Ordinal
				text = s.base + inputs[i].TextAt(at.Offset)
			}
			s.plan.Parts = append(s.plan.Parts, Entry{Phase: phase, From: at, TextBytes: int64(text)})
		}
		for _, span := range c.Spans {
			span.Input = i
			spans = append(spans, span)
		}
		inputs[i].Tail = c.Tail
		s.base += float64(max(0, inputs[i].TextBytes))
		if err := tally.Add(c); err != nil {
			return end, err
		}
	}
	if err := tally.Close(); err != nil {
		return end, err
	}
	at := tally.Position()
	s.noteSums(phase, at.Ordinal, spans)
	for i := range set.Known() {
		if tally.Unread(i) {
			s.unread = append(s.unread, s.known+i)
		}
	}
	s.known += len(set.Known())
	return at, nil
}

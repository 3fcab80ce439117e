package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/partition"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/shard"
)

// A scan is the target of a plan: it reads the sources and writes nothing. The reader finds the borders of
// partitions, by bytes; the flusher notes at each border what the documents before it decided.
type scan struct {
	whole
	partitions int
	plan       *partition.Plan

	// Of the reader.
	reader *source.Reader
	phase  int
	at     int           // the input that base is the beginning of
	listed source.Listed // the same
	base   float64       // estimated text before it
	target float64       // estimated text at which the next partition begins
	total  float64       // of all phases
	marks  int           // borders found

	// Of the flusher.
	held map[uint64]struct{} // noted in the plan

	threshold uint64      // documents whose hash is not below it go to training
	decided   atomic.Bool // nothing is held out any more
	temp      string      // the folder of what Dedup keeps
	copies    partition.CopyWriter
	copied    int64 // documents in the lists

	// Of counting.
	known  []source.Stat
	unread []int // of known: not read, so that their checksums are not known
}

// newScan returns a build whose target is a plan.
func newScan(o option.Options, partitions int) (*build, *scan) {
	b := newBuild(o, nil)
	s := &scan{whole: whole{b: b}, partitions: partitions}
	b.target, b.resumes = s, false
	return b, s
}

// fill finds where the partitions begin and what the documents before them decide.
func (s *scan) fill(ctx context.Context, p *partition.Plan) (err error) {
	s.init(p)
	if !needsText(&s.b.opts) {
		return s.count(ctx)
	}
	if s.temp, err = os.MkdirTemp("", "dsload-plan-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.temp)) }()
	f, err := s.b.newFlusher(ctx, nil, nil)
	if err != nil {
		return err
	}
	_, err = s.b.stream(ctx, f)
	return errors.Join(err, f.closeSeen())
}

// init prepares the scan for a plan.
func (s *scan) init(p *partition.Plan) {
	s.plan, s.held, s.at = p, map[uint64]struct{}{}, -1
	for i := range s.b.Phases {
		n, _ := s.b.Phases[i].Set.EstimateBytes()
		s.total += float64(n)
	}
	if m := float64(s.b.opts.MaxBytes); m > 0 {
		s.total = min(s.total, m)
	}
	s.target = s.total / float64(p.Partitions)
	p.Parts = append(p.Parts, partition.Entry{})
}

func (s *scan) begin(f *flusher) error {
	s.plan.Share = f.hold.Share
	f.origins.unwanted = true
	f.openSeen(filepath.Join(s.temp, "seen"), filepath.Join(s.temp, "seen.tmp"))
	if f.hold.Want > 0 {
		s.threshold = f.hold.Threshold()
	} else {
		s.decided.Store(true)
	}
	return nil
}

func (s *scan) isCopy(f *flusher, ordinal int64, key []byte) (bool, error) {
	isCopy, err := f.seen.Add(key)
	if isCopy {
		err = errors.Join(err, s.copy(f.state.Phase, ordinal))
	}
	return isCopy, err
}

func (*scan) write(*flusher, string, *shard.Example) error { return nil }
func (*scan) checkpoint(*flusher) error                    { return nil }

func (s *scan) interrupted(ctx context.Context, _ *flusher) error {
	if ctx.Err() != nil {
		return errNoPlanMade
	}
	return s.b.readErr
}

// errNoPlanMade ends a plan that was interrupted.
var errNoPlanMade = fmt.Errorf("plan: %w; nothing was written", ErrInterrupted)

// finish takes what the flusher knows at the end.
func (s *scan) finish(f *flusher) (*report.Summary, error) {
	s.noteHeld(f)
	s.plan.Sources = f.sources()
	s.plan.Unread = f.unread().counts()
	return nil, nil
}

// needsText reports whether what a document holds decides about later ones, or their numbers.
func needsText(o *option.Options) bool {
	heldOut := o.MaxValExamples > 0 && len(o.ValSources) == 0
	return heldOut || o.MaxBytes > 0 || o.Dedup != filter.None
}

// beginPhase begins the reading of a phase.
func (s *scan) beginPhase(number int, p *setup.Phase, reader *source.Reader) error {
	reader.NoteSpans()
	s.reader, s.phase, s.at = reader, number, -1
	if err := s.list(number, p.Set); err != nil {
		return err
	}
	s.goTo(0)
	return nil
}

// list lists the inputs of a phase.
func (s *scan) list(phase int, set *source.Set) error {
	list := make([]source.Listed, set.Len())
	for i := range list {
		var err error
		if list[i], err = set.PlanInput(i); err != nil {
			return err
		}
	}
	s.plan.Phases = append(s.plan.Phases, partition.Phase{Inputs: list})
	return nil
}

// goTo makes input i the open one.
func (s *scan) goTo(i int) {
	inputs := s.plan.Phases[s.phase].Inputs
	for ; s.at < i; s.at++ {
		if s.at >= 0 {
			s.base += float64(inputs[s.at].TextBytes)
		}
	}
	if i < len(inputs) {
		s.listed = inputs[i]
	}
}

// due reports whether a partition may end at text, and if so sets where the next one does: the text
// that is left is divided evenly among the partitions that are left.
func (s *scan) due(text float64) bool {
	if s.marks+1 >= s.plan.Partitions || text < s.target {
		return false
	}
	s.marks++
	s.target = text + (s.total-text)/float64(s.plan.Partitions-s.marks)
	return true
}

// inside returns the border at a position after a record, nil if there is none. It is called
// before the next record is read.
func (s *scan) Inside(p *source.Position) *job.Mark {
	if p.Inside || p.Input != s.at || !s.listed.Cuttable() {
		return nil
	}
	offset, ok := s.reader.Border()
	text := s.base + s.listed.TextAt(offset)
	if !ok || !s.due(text) {
		return nil
	}
	s.reader.EndSpan()
	return &job.Mark{Phase: s.phase, Text: int64(text), At: source.Mark{Input: p.Input, Offset: offset, Row: p.Row,
		Ordinal: p.Ordinal,
		State:   p.State}}
}

// between returns the border between the input of the last record and that of the next, nil where
// there is none.
func (s *scan) Between(input int, ordinal int64) *job.Mark {
	if input == s.at {
		return nil
	}
	last := s.at
	s.goTo(input)
	if !s.due(s.base) {
		return nil
	}
	return &job.Mark{Phase: s.phase, Text: int64(s.base), At: source.Mark{Input: last + 1, Ordinal: ordinal}}
}

// skip reports whether a plan does not need the ids of a document.
func (s *scan) skip(d *job.Document) bool {
	return s.decided.Load() || s.phase == setup.Val || d.First && d.Hash >= s.threshold
}

// skipped reports whether a document that was routed is not needed any more.
func (s *scan) skipped(c *cursor) bool { return c.Phase == setup.Val || c.Verdict != heldout.ToVal }

// border notes the beginning of a partition, after the documents before it.
func (s *scan) border(f *flusher, m *job.Mark) {
	s.noteHeld(f)
	s.endCopies()
	s.plan.Parts = append(s.plan.Parts, partition.Entry{Phase: m.Phase, From: m.At, TextBytes: m.Text,
		Before: s.state(f)})
}

func (s *scan) state(f *flusher) partition.State {
	p := partition.State{Val: f.hold.Have, Held: len(s.plan.Held)}
	if s.b.opts.MaxBytes > 0 {
		p.TextBytes = f.state.TextBytes
	}
	return p
}

func (s *scan) noteHeld(f *flusher) {
	if f.hold.Size() == len(s.held) {
		return
	}
	noted := len(s.plan.Held)
	for _, h := range f.hold.Hashes() {
		if _, known := s.held[h]; !known {
			s.held[h] = struct{}{}
			s.plan.Held = append(s.plan.Held, h)
		}
	}
	slices.Sort(s.plan.Held[noted:])
}

// endPhase notes the checksums of a phase's inputs. whole is false if a budget ended it.
func (s *scan) endPhase(phase int, reader *source.Reader, whole bool) {
	if !whole {
		s.marks = s.plan.Partitions // no later phase is cut
	}
	s.base += float64(s.listed.TextBytes)
	s.noteSums(phase, reader.Position().Ordinal, reader.Spans())
}

// noteSums gives the inputs and partitions of a phase the checksums of what they have.
func (s *scan) noteSums(phase int, documents int64, spans []source.Span) {
	p := &s.plan.Phases[phase]
	p.Documents = documents
	sums := map[[2]int64]checksum.Sum{} // by input and beginning
	for _, span := range spans {
		sums[[2]int64{int64(span.Input), span.From}] = span.Sum
	}
	for i := range p.Inputs {
		if _, cut := sums[[2]int64{int64(i), 0}]; cut {
			p.Inputs[i].Sum = sums[[2]int64{int64(i), 0}]
		}
	}
	for i := range s.plan.Parts {
		part := &s.plan.Parts[i]
		if part.Phase == phase && part.From.Offset > 0 {
			part.FirstSum = sums[[2]int64{int64(part.From.Input), part.From.Offset}]
		}
		if i+1 >= len(s.plan.Parts) {
			continue
		}
		next := &s.plan.Parts[i+1]
		if next.Phase != phase || next.From.Offset == 0 {
			continue
		}
		from := int64(0)
		if part.Phase == phase && part.From.Input == next.From.Input {
			from = part.From.Offset
		}
		part.LastSum = sums[[2]int64{int64(next.From.Input), from}]
	}
}

// complete fills the partitions for which nothing was left, and turns positions into sizes.
func (s *scan) complete() {
	p := s.plan
	s.endCopies()
	phase, end := len(p.Phases)-1, source.Mark{}
	end.Input, end.Ordinal = len(p.Phases[phase].Inputs), p.Phases[phase].Documents
	last := p.Parts[len(p.Parts)-1].Before
	for len(p.Parts) < p.Partitions {
		p.Parts = append(p.Parts, partition.Entry{Phase: phase, From: end, TextBytes: int64(s.total), Before: last})
	}
	for i := range p.Parts {
		next := int64(s.total)
		if i+1 < len(p.Parts) {
			next = p.Parts[i+1].TextBytes
		}
		p.Parts[i].TextBytes = max(0, next-p.Parts[i].TextBytes)
	}
	cut := map[[2]int]bool{}
	for i := range p.Parts {
		if part := &p.Parts[i]; part.From.Offset > 0 {
			cut[[2]int{part.Phase, part.From.Input}] = true
		}
	}
	for i := range p.Phases { // what is listed for a whole input is the sum of all of it
		for j := range p.Phases[i].Inputs {
			if cut[[2]int{i, j}] {
				p.Phases[i].Inputs[j].Sum = checksum.Sum{}
			}
		}
	}
}

// copy notes that a document is a copy.
func (s *scan) copy(phase int, ordinal int64) error {
	// A growing list takes twice its size. While it is written, another copy is a third longer.
	if s.copied++; 4*s.copied > s.b.opts.Memory/copiesShare {
		return fault.Errorf("plan: %w: {dedup} leaves out more documents than there is room to list, "+
			"%d so far; raise {memory}",
			read.ErrMemory, s.copied)
	}
	s.copies.Add(phase, ordinal)
	return nil
}

// endCopies gives its lists to the partition that ends.
func (s *scan) endCopies() {
	s.plan.Parts[len(s.plan.Parts)-1].Copies = s.copies.Lists()
	s.copies = partition.CopyWriter{}
}

package plan

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/shard"
)

// A Scan makes a plan of the sources while they are read, without writing anything. The reader finds the borders of
// partitions, by bytes; once the documents before a border have passed the last stage, Border notes what they decided.
type Scan struct {
	o    *option.Options
	plan *Plan

	// Of the reader.
	reader *source.Reader
	phase  int
	at     int           // the input that base is the beginning of
	listed source.Listed // the same
	base   float64       // estimated text before it
	target float64       // estimated text at which the next partition begins
	total  float64       // estimated text of all phases
	marks  int           // borders found

	held      map[uint64]struct{} // noted in the plan
	threshold uint64              // documents whose hash is not below it go to training
	decided   bool                // nothing is held out
	copies    CopyWriter
	copied    int64 // documents in the lists

	// Of counting.
	known  int   // inputs of the phases before
	unread []int // inputs that were not read, so that their checksums are not known
}

// NewScan returns a scan for an empty plan of sources, a set for each phase.
func NewScan(o *option.Options, p *Plan, sets []*source.Set) *Scan {
	s := &Scan{o: o, plan: p, held: map[uint64]struct{}{}, at: -1}
	for _, set := range sets {
		n, _ := set.EstimateBytes()
		s.total += float64(n)
	}
	if m := float64(o.MaxBytes); m > 0 {
		s.total = min(s.total, m)
	}
	s.target = s.total / float64(p.Partitions)
	p.Parts = append(p.Parts, Entry{})
	return s
}

// Hold notes how documents are chosen for val. It comes before the first phase.
func (s *Scan) Hold(hold *heldout.Chooser) {
	s.plan.Share = hold.Share
	if s.decided = hold.Want == 0; !s.decided {
		s.threshold = hold.Threshold()
	}
}

// NeedsText reports whether what a document holds decides about later ones, or their numbers.
func NeedsText(o *option.Options) bool {
	heldOut := o.MaxValExamples > 0 && len(o.ValSources) == 0
	return heldOut || o.MaxBytes > 0 || o.Dedup != filter.None
}

// Begin begins the reading of the next phase.
func (s *Scan) Begin(set *source.Set, reader *source.Reader) error {
	reader.NoteSpans()
	s.reader, s.phase, s.at = reader, len(s.plan.Phases), -1
	if err := s.list(set); err != nil {
		return err
	}
	s.goTo(0)
	return nil
}

// list lists the inputs of the next phase.
func (s *Scan) list(set *source.Set) error {
	list := make([]source.Listed, set.Len())
	for i := range list {
		var err error
		if list[i], err = set.PlanInput(i); err != nil {
			return err
		}
	}
	s.plan.Phases = append(s.plan.Phases, Phase{Inputs: list})
	return nil
}

// goTo makes input i the open one.
func (s *Scan) goTo(i int) {
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

// due reports whether a partition may end at text, and if so marks it.
func (s *Scan) due(text float64) bool {
	if s.marks+1 >= s.plan.Partitions || text < s.target {
		return false
	}
	s.mark(text)
	return true
}

// mark ends a partition at text, and sets where the next one ends: the text that is left is divided evenly among the
// partitions that are left.
func (s *Scan) mark(text float64) {
	s.marks++
	s.target = text + (s.total-text)/float64(s.plan.Partitions-s.marks)
}

// Inside returns the border at a position after a record, nil if there is none. It is called
// before the next record is read.
func (s *Scan) Inside(p *source.Position) *job.Mark {
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

// Between returns the border between the input of the last record and that of the next, nil where
// there is none.
func (s *Scan) Between(input int, ordinal int64) *job.Mark {
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

// Skip reports whether a plan does not need the ids of a document.
func (s *Scan) Skip(d *job.Document) bool {
	return s.decided || s.phase > 0 || d.First && d.Hash >= s.threshold
}

// Border notes the beginning of a partition, after the documents before it, which have textBytes in all.
func (s *Scan) Border(m *job.Mark, hold *heldout.Chooser, textBytes int64) {
	s.noteHeld(hold)
	s.endCopies()
	before := State{Val: hold.Have, Held: len(s.plan.Held)}
	if s.o.MaxBytes > 0 {
		before.TextBytes = textBytes
	}
	s.plan.Parts = append(s.plan.Parts, Entry{Phase: m.Phase, From: m.At, TextBytes: m.Text, Before: before})
}

func (s *Scan) noteHeld(hold *heldout.Chooser) {
	if hold.Size() == len(s.held) {
		return
	}
	noted := len(s.plan.Held)
	for _, h := range hold.Hashes() {
		if _, known := s.held[h]; !known {
			s.held[h] = struct{}{}
			s.plan.Held = append(s.plan.Held, h)
		}
	}
	slices.Sort(s.plan.Held[noted:])
}

// End notes the checksums of the inputs of the phase that Begin began. whole is false if a budget ended it.
func (s *Scan) End(whole bool) {
	if !whole {
		s.marks = s.plan.Partitions // no later phase is cut
	}
	s.base += float64(s.listed.TextBytes)
	s.noteSums(s.phase, s.reader.Position().Ordinal, s.reader.Spans())
}

// noteSums gives the inputs and partitions of a phase the checksums of what they have.
func (s *Scan) noteSums(phase int, documents int64, spans []source.Span) {
	p := &s.plan.Phases[phase]
	p.Documents = documents
	sums := map[[2]int64]checksum.Sum{} // keys: input, beginning
	for _, span := range spans {
		sums[[2]int64{int64(span.Input), span.From}] = span.Sum
	}
	for i := range p.Inputs {
		if sum, cut := sums[[2]int64{int64(i), 0}]; cut {
			p.Inputs[i].Sum = sum
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

// Complete takes what is known at the end: the sources as the manifest lists them, what a budget left of them, and, where
// documents were read, which are held out. It fills the partitions for which nothing was left, and turns positions into
// sizes.
func (s *Scan) Complete(hold *heldout.Chooser, sources []shard.SourceInfo, unread counts.Unread) {
	p := s.plan
	p.Sources, p.Unread = sources, unread
	for _, i := range s.unread {
		p.Sources[i].Checksum = ""
	}
	if hold != nil {
		s.noteHeld(hold)
	}
	s.endCopies()
	phase, end := p.Start(p.Partitions)
	last := p.Parts[len(p.Parts)-1].Before
	for len(p.Parts) < p.Partitions {
		p.Parts = append(p.Parts, Entry{Phase: phase, From: end, TextBytes: int64(s.total), Before: last})
	}
	for i := range p.Parts {
		next := int64(s.total)
		if i+1 < len(p.Parts) {
			next = p.Parts[i+1].TextBytes
		}
		p.Parts[i].TextBytes = max(0, next-p.Parts[i].TextBytes)
	}
	for i := range p.Parts { // what is listed for a whole input is the sum of all of it
		if part := &p.Parts[i]; part.From.Offset > 0 {
			p.Phases[part.Phase].Inputs[part.From.Input].Sum = checksum.Sum{}
		}
	}
}

// Copy notes that a document is a copy.
func (s *Scan) Copy(phase int, ordinal int64) error {
	// A growing list takes twice its size. While it is written, another copy is a third longer.
	if s.copied++; 4*s.copied > s.o.Memory/copiesShare {
		return fault.Errorf("plan: %w: {dedup} leaves out more documents than there is room to list, "+
			"%d so far; raise {memory}",
			read.ErrMemory, s.copied)
	}
	s.copies.Add(phase, ordinal)
	return nil
}

// endCopies gives its lists to the partition that ends.
func (s *Scan) endCopies() {
	s.plan.Parts[len(s.plan.Parts)-1].Copies = s.copies.Lists()
	s.copies = CopyWriter{}
}

// A plan holds a line for each input and each partition, and writes them as one document.
const (
	// planLineBytes bounds what a line takes: the values, and the text of several stages of writing.
	planLineBytes = 2 << 10
	// copiesShare is the part of the cap that the lists of copies may take.
	copiesShare = 16
)

// Shares returns the shares of the memory cap that making a plan of so many inputs takes.
func Shares(o *option.Options, inputs, partitions int) []budget.Share {
	shares := []budget.Share{{Name: "plan", Bytes: int64(inputs+partitions) * planLineBytes,
		Why: fmt.Sprintf("a line for each of %d inputs and %d partitions", inputs, partitions)}}
	if o.Dedup != filter.None {
		shares = append(shares, budget.Share{Name: "copies", Bytes: o.Memory / copiesShare,
			Why: "lists of the documents that are left out as copies"})
	}
	return shares
}

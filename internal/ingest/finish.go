package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/earlier"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/shardfile"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

const stoppedAtEnd = "the sources ended"

// endPhase notes how a phase ended and makes the next begin.
func (f *flusher) endPhase() {
	s := &f.state
	end := phaseEnd{Stopped: f.stopped, Position: s.Position, Input: s.Input, Offset: s.Offset,
		SourceBytes: s.SourceBytes}
	end.Cut = f.stopped != "" && slices.Contains(s.CutBy, f.stopped)
	if f.stopped == "" || f.sourcesEnded {
		end.Input = f.b.Phases[s.Phase].Set.Len()
	}
	s.Ends = append(s.Ends, end)
	s.Phase++
	s.Damaged.Last = 0 // the next phase counts inputs from the first
	s.Position, s.SourceBytes, s.Input, s.Offset, s.Answered = source.Position{}, 0, 0, 0, nil
	f.cutter.Reset()
}

// checkRows is an error if the sources gave no rows to train on.
func (f *flusher) checkRows() error {
	if f.state.Train == 0 {
		return errors.Join(f.noExamples(), f.forget())
	}
	return nil
}

// forget leaves the folder open to other settings.
func (f *flusher) forget() error {
	_, err := f.out.Checkpoint(true, nil)
	return err
}

// finish commits a dataset of its own.
func (f *flusher) finish() (*report.Summary, error) {
	if err := f.checkRows(); err != nil {
		return nil, err
	}
	if err := f.writeTokenizer(); err != nil {
		return nil, err
	}
	if held := f.hold.Hashes(); len(held) > 0 { // kept for additions
		if err := f.out.File(shardfile.HeldOutName, bytes.NewReader(heldout.File(held))); err != nil {
			return nil, err
		}
	}
	return f.commit(func(*dataset.Provenance, map[string]any) {})
}

// commit writes the dataset's last files and its manifest, and returns its summary. amend may change what the
// manifest and run.json say.
func (f *flusher) commit(amend func(*dataset.Provenance, map[string]any)) (*report.Summary, error) {
	s, b := &f.state, f.b
	if err := f.writeSeen(); err != nil {
		return nil, err
	}
	if s.Rejected > 0 {
		lines, err := s.Bad.Lines()
		if err != nil {
			return nil, err
		}
		if err := f.out.File(shardfile.RejectsName, bytes.NewReader(lines)); err != nil {
			return nil, err
		}
	}
	if err := f.origins.finish(&f.state, f.out); err != nil {
		return nil, err
	}
	sum := f.summary()
	run := f.runRecord(sum)
	provenance := dataset.Provenance{Tokenizer: b.TokenizerInfo(), Sources: f.sources(), Counters: s.Map(),
		Dropped: s.DroppedBy, Run: run, BySource: &s.Sources}
	amend(&provenance, run)
	manifest, err := f.out.Finish(provenance)
	if err != nil {
		return nil, err
	}
	sum.AddSplits(manifest)
	sum.Packing = report.Packed(manifest)
	return sum, nil
}

// writeTokenizer puts the tokenizer's files next to the shards.
func (f *flusher) writeTokenizer() error {
	details := f.b.Tokenizer.Details()
	for _, file := range []func() (string, []byte){details.File, details.Config} {
		if name, data := file(); data != nil {
			if err := f.out.File(name, bytes.NewReader(data)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sources lists what was read, phase by phase. An input in whose middle a budget ended the build
// has no checksum: how far the reader got is chance.
func (f *flusher) sources() []shard.SourceInfo {
	var out []shard.SourceInfo
	for i, end := range f.state.Ends {
		for _, line := range f.b.Phases[i].Set.LinesRead(end.Position) {
			info := shard.SourceInfo{URI: line.URI, Files: line.Files, Bytes: line.Size, ETag: line.ETag,
				Revision: line.Revision}
			if line.Inputs <= end.Input {
				info.Checksum = line.Checksum
			}
			out = append(out, info)
		}
	}
	return out
}

// summary returns everything except the splits, which are in the manifest.
func (f *flusher) summary() *report.Summary {
	s, b := &f.state, f.b
	unread := f.unread()
	s.Unread = unread.counts()
	seconds := b.elapsed().Seconds()
	sum := &report.Summary{
		Out: b.opts.Out, Counts: s.Counts,
		Warnings:  slices.Concat(b.Warnings(), s.Damaged.Warnings(s.DamagedInputs), s.IllFormed.Warnings(s.Replaced)),
		Resumed:   b.meter.resumed.Documents > 0,
		ResumedAt: b.meter.resumed.Examples, Seconds: seconds, PeakRSSBytes: resident.Peak(), CapBytes: b.opts.Memory,
		MBPerSecond:     rate(s.TextBytes-b.meter.resumed.TextBytes, seconds) / 1e6,
		TokensPerSecond: rate(s.Tokens-b.meter.resumed.Tokens, seconds),
	}
	sum.Formats, sum.DocumentEnd = f.b.Formats(), f.b.DocumentEnd()
	sum.Stopped = fault.Textf("%v%v", b.stopped(s.Ends[0]), unread)
	sum.Notes = f.notes()
	return sum
}

func (b *build) stopped(end phaseEnd) fault.Text {
	if end.Stopped == "" {
		return fault.Plain(stoppedAtEnd)
	}
	return fault.Textf("%v reached", report.Reached(end.Stopped, b.opts.BudgetOf(end.Stopped)))
}

// notes describes what was left out, or done in an unexpected way.
func (f *flusher) notes() (notes []fault.Text) {
	s, b := &f.state, f.b
	o := &b.opts
	add := func(format string, args ...any) { notes = append(notes, fault.Textf(format, args...)) }
	for i, end := range s.Ends {
		notes = append(notes, b.Phases[i].Set.Notes()...)
		notes = append(notes, report.Skipped(&end.Position)...)
	}
	switch short := o.MaxValExamples - s.Val; {
	case b.partition != nil:
	case len(b.Phases) > 1 && s.Val == 0:
		add("there is no split val: nothing of its sources is left")
	case len(b.Phases) == 1 && short > 0:
		add("held out %s of the %s examples asked for: at most about half of the documents is held out, chosen by "+
			"the hash of their text, and the sources have no more", units.Count(s.Val), units.Count(o.MaxValExamples))
	}
	if s.Ends[0].Stopped == "" && slices.Contains(s.CutBy, "max-examples") {
		add("%v was reached before the sources ended: what followed was read for the split val alone",
			report.Reached("max-examples", o.MaxExamples))
	}
	if len(s.Ends) > 1 && s.Ends[1].Cut {
		add("%v: the rest of the sources of val was left unread", b.stopped(s.Ends[1]))
	}
	notes = slices.Concat(notes, report.ValRest(s.ValRest), report.LossesOf(s.Counts, b.kind()), f.unmet(), s.Lines.Notes(),
		s.Bad.Notes(), s.Shared.Notes(), s.Unfound.Notes(), report.Found(&s.Counts), b.EndNotes())
	if s.ForcedCuts > 0 {
		add("cuts at a character where %s of text have no place that suits the tokenizer: %s; ids next to them "+
			"can differ from those of the whole text", units.Size(job.PieceBytes), units.Count(s.ForcedCuts))
	}
	if s.Copies > 0 {
		add("copies of held-out documents left out of training: %s, %s",
			units.Plural(s.Copies, "document"), units.Plural(s.CopiedExamples, "example"))
	}
	return notes
}

// rate returns n per second, 0 if no time passed.
func rate(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// unread is what the budget that ended the build left of the sources.
type unread struct {
	cut          bool  // a budget ended the build, and something was left
	reached      bool  // a budget ended the build
	bytes, total int64 // stored bytes; -1 if unknown
	exact        bool  // bytes depend on the sources and settings alone, not on how far a decompressor had read
	untouched    int   // inputs of which nothing was read
	inputs       int
	all          bool // the sources were read to their end before their last rows reached the budget
}

// counts returns what a manifest says of what a budget left.
func (u unread) counts() (c counts.Unread) {
	if u.cut {
		c.UnreadInputs = new(int64(u.untouched))
	}
	if u.cut && u.exact {
		c.UnreadBytes = &u.bytes
	}
	return c
}

func (f *flusher) unread() unread {
	end := f.state.Ends[0]
	u := unread{cut: end.Cut, reached: end.Stopped != ""}
	if !u.reached {
		return u
	}
	set := f.b.Phases[0].Set
	if end.Input >= set.Len() {
		u.all, u.exact = true, true
		return u
	}
	u.untouched, u.inputs, u.total = set.Len()-end.Input-1, set.Len(), set.TotalBytes()
	last, err := set.Input(end.Input)
	var used int64
	for i := 0; i < end.Input && err == nil && u.total >= 0; i++ {
		var in source.Input
		in, err = set.Input(i)
		used += in.Size
	}
	if u.total < 0 || err != nil {
		u.bytes, u.total = -1, -1
		return u
	}
	if last.OffsetsAreBytes() {
		used += end.Offset
		u.exact = true
	} else {
		used = max(used, end.SourceBytes) // how far the decompressor had read
	}
	u.bytes = max(0, u.total-used)
	return u
}

// String is appended to the description of the budget.
func (u unread) String() string {
	switch {
	case !u.reached:
		return ""
	case !u.cut:
		return ", where the sources ended"
	case u.all:
		return " by the last rows of the sources; the surplus was dropped"
	case u.total < 0:
		return "; the rest of the sources was left unread"
	}
	text := fmt.Sprintf("; %s of %s bytes of the sources were left unread", units.Count(u.bytes), units.Count(u.total))
	if u.untouched > 0 {
		text += fmt.Sprintf(", %s of %s inputs untouched", units.Count(u.untouched), units.Count(u.inputs))
	}
	return text
}

// runRecord is run.json: what differs between equal builds.
func (f *flusher) runRecord(sum *report.Summary) map[string]any {
	host, _ := os.Hostname() // for people; it may be missing
	return map[string]any{
		"finished": f.b.opts.Now().UTC().Format(time.RFC3339), "host": host,
		"platform": runtime.GOOS + "/" + runtime.GOARCH, "go": runtime.Version(),
		"seconds": sum.Seconds, "mb_per_s": sum.MBPerSecond, "tokens_per_s": sum.TokensPerSecond,
		"peak_rss_bytes":   sum.PeakRSSBytes,
		"memory_cap_bytes": sum.CapBytes, "workers": f.b.opts.Workers, "checkpoint_every": f.b.opts.CheckpointEvery,
		"resumed": sum.Resumed,
		"sources": earlier.TimesOf(f.b.Known()),
	}
}

func (b *build) kind() report.Kind {
	switch {
	case b.Chat != nil:
		return report.Conversations
	case b.HasTarget():
		return report.Pairs
	}
	return report.Texts
}

// noExamples returns the error of a build without examples: what happened to the documents.
func (f *flusher) noExamples() error {
	s, dropped := &f.state, int64(0)
	for _, n := range s.DroppedBy {
		dropped += n
	}
	if dropped > 0 && dropped == s.Documents {
		return f.noneLeft()
	}
	var reasons []fault.Text
	none := "no examples"
	if s.Examples > 0 {
		none = "no examples to train on, and " + units.Plural(s.Examples, "example") + " of the split val"
		reasons = report.Dropped(s.Counts)
	}
	if n := s.Rejected; n > 0 {
		reason := fault.Textf("bad records skipped: %d", n)
		if len(s.Bad.List) > 0 {
			first := s.Bad.List[0]
			reason = fault.Textf("%v, the first of them %s, row %d: %s", reason, first.Source, first.Row, first.Reason)
		}
		reasons = append(reasons, reason)
	}
	if n := s.Dropped; n > 0 {
		reasons = append(reasons, fault.Textf("documents longer than {max-length} dropped: %d", n))
	}
	if s.Untrained > 0 || len(s.UnknownRoles) > 0 {
		reasons = append(reasons, f.b.Chat.WhyUntrained(s.UnfoundTurns, s.UnknownRoles))
	}
	reasons = append(reasons, report.CutOff(s.Counts, f.b.kind())...)
	if len(reasons) == 0 {
		reasons = []fault.Text{fault.Textf("%v", cause.NoDocuments)}
	}
	return fault.Of(cause.NoDocuments, "build %s: the sources gave %s: %v", f.b.opts.Place(), none,
		fault.Join(reasons, "; "))
}

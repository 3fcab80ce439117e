package ingest

import (
	"context"

	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
)

// What --val names may be in train too. Its documents are read before those of train, so that what is kept does not
// grow with these.

// openShared reads the documents of val, to find them among those of train. It does not where Dedup compares them, where
// a command would have to answer them twice, in one partition of a plan, and where they can be read only once.
func (f *flusher) openShared(ctx context.Context) error {
	o := &f.b.opts
	if len(o.ValSources) == 0 || o.Dedup != filter.None || o.Map != "" || f.b.partition != nil {
		return nil
	}
	set := f.b.Phases[setup.Val].Set
	for i := range set.Len() {
		if in, err := set.Input(i); err != nil || !in.Rereadable() {
			return err
		}
	}
	reader, err := set.Reader(source.Position{})
	if err != nil {
		return err
	}
	defer reader.Close()
	w := f.b.newWorker(setup.TailCacheBytes)
	w.Skip = func(*job.Document) bool { return true }
	w.Begin(f.b.Phases[setup.Val].Formatter, false, ctx.Done())
	shared, j := &heldout.Shared{}, &job.Job{Documents: make([]job.Document, 1)}
	for room := true; room; {
		d := &j.Documents[0]
		*d = job.Document{}
		if j.Raw, err = reader.Next(j.Raw[:0], &d.Record); err != nil {
			break // the phase of val meets it again
		}
		d.Raw = job.Span{End: len(j.Raw)}
		if j.Unused, j.Keys = j.Unused[:0], j.Keys[:0]; !w.Do(j) {
			return ErrInterrupted
		}
		if d.First && d.Err == nil && d.Bad == nil && d.Dropped == filter.Kept {
			room = shared.Add(d.Hash)
		}
	}
	shared.Seal(f.state.Shared.Met)
	f.shared = shared
	return nil
}

// noteShared counts a document of val that train has.
func (f *flusher) noteShared(d *job.Document) {
	s := &f.state
	switch {
	case f.shared == nil || !d.First:
	case s.Phase == setup.Train:
		if f.shared.Meet(d.Hash) {
			s.Shared.Met = append(s.Shared.Met, d.Hash)
		}
	case f.shared.Has(d.Hash):
		s.Shared.InTrain++
		if f.shared.Full {
			s.Shared.Compared = heldout.MaxShared
		}
	}
}

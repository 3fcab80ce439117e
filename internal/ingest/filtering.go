package ingest

import (
	"errors"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/shardfile"
)

// Filters judge whole documents, in the workers. Dedup compares them in the flusher, in the order of
// the sources. What either leaves out is counted by the name of the option.

// drop leaves out a document that a filter or Dedup drops, and counts it.
func (f *flusher) drop(t *arrival) (keep bool, err error) {
	s, d := &f.state, t.Document
	s.Has |= d.Has
	if d.AsText {
		s.WhereAsText++
	}
	if d.Names != nil && s.Phase == setup.Train {
		s.Names = d.Names
	}
	reason := d.Dropped
	if reason == filter.Kept && f.b.opts.Dedup != filter.None {
		isCopy, err := f.judge(t.Job, d)
		switch {
		case err != nil || !isCopy:
			return true, err
		case s.Phase == setup.Val:
			reason = filter.ValCopy
		case f.hold.Full() && f.hold.Has(d.Hash):
			return true, nil // counts as a copy of a held-out document
		default:
			reason = filter.Copied
		}
	}
	if reason == filter.Kept {
		return true, nil
	}
	n := int64(1)
	if d.Skipped {
		n = d.Rows
	}
	s.Drop(string(reason), n)
	s.Documents += n
	f.since++
	return false, nil
}

// writeSeen keeps the record in the dataset, so that additions can be compared with it.
func (f *flusher) writeSeen() error {
	if f.seen == nil {
		return nil
	}
	keys, err := f.seen.Keys()
	if err == nil {
		err = f.out.File(shardfile.HashesName(0), keys)
	}
	return errors.Join(err, f.closeSeen())
}

// closeSeen also releases the record's memory.
func (f *flusher) closeSeen() error {
	if f.seen == nil {
		return nil
	}
	err := f.seen.Close()
	f.seen = nil
	return err
}

// noneLeft describes which filters left out how many, and fields that no record has.
func (f *flusher) noneLeft() error {
	s := &f.state
	reasons := append(report.Dropped(s.Counts), report.ComparedAsText(s.Counts)...)
	for i, p := range f.b.Filter.Fields() {
		if s.Has&(1<<i) == 0 && s.DroppedBy[string(filter.ByMap)] < s.Documents {
			reasons = append(reasons, fault.Plain(advice.NoField(p.String(), "the first has", s.Names)))
		}
	}
	if s.Rejected > 0 {
		reasons = append(reasons, fault.Textf("bad records skipped: %d", s.Rejected))
	}
	if slices.ContainsFunc(f.b.opts.Where, func(condition string) bool {
		_, value, equals := strings.Cut(condition, "=")
		return equals && strings.ContainsAny(value, ",|*%")
	}) {
		reasons = append(reasons, fault.Textf("{where} takes a VALUE as it is, without lists and wildcards: give one "+
			"{where} for each value"))
	}
	return fault.Errorf("build %s: no document is left: %v", f.b.opts.Place(), fault.Join(reasons, "; "))
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// Filters judge whole documents, in the workers. Dedup compares them in the flusher, in the order of
// the sources. What either leaves out is counted by the name of the option.

func (b *build) openFilter(context.Context) (err error) {
	b.filter, err = filter.NewFilter(b.opts.Filter)
	return err
}

// withFilterFields adds the fields that conditions look at to those that are read; nil stands for
// all.
func (b *build) withFilterFields(fields []string) []string {
	if fields == nil {
		return nil
	}
	for _, name := range b.filter.FieldNames() {
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields
}

// conditions returns the conditions on fields as the sources judge them. Only with comparisons do they
// leave out rows unread: before there were any, the checksum of a source was over all of its rows.
func (b *build) conditions() (conditions []source.Condition) {
	for i, p := range b.filter.Fields() {
		c := source.Condition{Field: p.String(), Names: []string{p.String(), p.Root()},
			Folder: func(value string, null bool) bool { return b.filter.Folder(i, value, null) }}
		if b.filter.Compares() && b.opts.Map == "" { // conditions are about what comes back from it
			c.Paths = [][]string{{p.String()}}
			if names := p.Names(); len(names) > 1 {
				c.Paths = append(c.Paths, names)
			}
			c.CanHold = func(s source.Stats) bool { return b.filter.CanHold(i, filter.Extent(s)) }
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// checkFields refuses conditions on fields that no record can have.
func (b *build) checkFields(context.Context) error {
	fields := b.filter.Fields()
	if len(fields) == 0 || b.opts.Map != "" { // what comes back from it has fields of its own
		return nil
	}
	if i, has, lacking := b.phases[phaseTrain].set.Lacking(); lacking && b.partition == nil {
		where := b.opts.Filter.Where
		at := slices.IndexFunc(where, func(w string) bool {
			return strings.HasPrefix(strings.TrimSpace(w), fields[i].String())
		})
		return fault.BadOption("where", where[max(at, 0)], "%v",
			advice.NoField(fields[i].Root(), "the columns are", has))
	}
	for _, p := range b.phases {
		if in, found := p.set.Fieldless(); found {
			return fault.BadOption("where", b.opts.Filter.Where[0], "records of the format %s have no fields (%s); "+
				"choose by their text with {match}, or leave files out with {exclude}",
				in.Format, source.Shown(in.URI))
		}
	}
	return nil
}

// filterShares returns the shares of the memory cap that filters take, none without them.
func filterShares(o *option.Options, f *filter.Filter) (parts []budget.Share) {
	if o.Filter.Active() {
		parts = append(parts, budget.Share{Name: "filters", Bytes: f.MemoryBytes(o.Workers),
			Why: "conditions and expressions, and what each worker's matches take"})
	}
	return parts
}

// seenShare returns the share of the memory cap that Dedup takes with pool bytes of pages.
func seenShare(pool int64) budget.Share {
	return budget.Share{Name: "dedup", Bytes: filter.SeenBytes(pool), Why: fmt.Sprintf(
		"hashes of earlier documents: %v of them, the others in a file of the folder", units.Size(pool))}
}

// filtered is the part of the cursor about fields and copies.
type filtered struct {
	Has   uint64       `json:"where_fields,omitempty"`
	Names []string     `json:"first_fields,omitempty"`
	Seen  *filter.Mark `json:"seen,omitempty"`
}

// drop leaves out a document that a filter or Dedup drops, and counts it.
func (f *flusher) drop(t *taken) (keep bool, err error) {
	s, d := &f.state, t.Document
	s.Has |= d.Has
	if d.AsText {
		s.WhereAsText++
	}
	if d.Names != nil && s.Phase == phaseTrain {
		s.Names = d.Names
	}
	reason := d.Dropped
	if reason == filter.Kept && f.b.opts.Dedup != filter.None {
		isCopy, err := f.b.target.isCopy(f, d.Ordinal, t.Keys[d.Key.Start:d.Key.End])
		switch {
		case err != nil || !isCopy:
			return true, err
		case s.Phase == phaseVal:
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

// openSeen makes an empty record of the documents that were seen.
func (f *flusher) openSeen(log, scratch string) {
	if o := &f.b.opts; o.Dedup != filter.None {
		f.seen = filter.NewSeen(o.Dedup, o.FS, log, scratch, f.b.memory.seenPool)
	}
}

func (f *flusher) restoreSeen() error {
	if f.seen == nil || f.state.Seen == nil {
		return nil
	}
	return f.seen.Restore(*f.state.Seen)
}

// saveSeen makes the record durable and puts its length into the cursor.
func (f *flusher) saveSeen() error {
	if f.seen == nil {
		return nil
	}
	mark, err := f.seen.Sync()
	f.state.Seen = &mark
	return err
}

// writeSeen keeps the record in the dataset, so that additions can be compared with it.
func (f *flusher) writeSeen() error {
	if f.seen == nil {
		return nil
	}
	keys, err := f.seen.Keys()
	if err == nil {
		err = f.builder.WriteFile(f.b.target.extraName(shard.HashesName(0)), keys)
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

// allDropped reports whether filters left out all that was read.
func (f *flusher) allDropped() bool {
	var n int64
	for _, dropped := range f.state.DroppedBy {
		n += dropped
	}
	return n > 0 && n == f.state.Documents
}

// noneLeft describes which filters left out how many, and fields that no record has.
func (f *flusher) noneLeft() error {
	s := &f.state
	reasons := append(report.Dropped(s.Counts), report.ComparedAsText(s.Counts)...)
	for i, p := range f.b.filter.Fields() {
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
	return fault.Errorf("build %s: no document is left: %v", f.b.opts.Out, fault.Join(reasons, "; "))
}

package advice

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// record returns the bad record that ends a build, nil for other errors.
func (f *Facts) record(err error) *source.RecordError {
	if bad, ok := errors.AsType[*source.RecordError](err); ok && f.Options.OnBadRecord != option.SkipBadRecord {
		return bad
	}
	return nil
}

func (f *Facts) inputOf(bad *source.RecordError) source.Input {
	for _, set := range f.Sets {
		if bad.Input >= set.Len() {
			continue // it is one of another set
		}
		if in, err := set.Input(bad.Input); err == nil && in.URI == bad.URI {
			return in
		}
	}
	return source.Input{}
}

// plannedRecord is about a record of a partition: all partitions have the settings of the plan, and its counts.
func plannedRecord(f Facts, err error) (error, bool) {
	if !f.Partition || f.record(err) == nil {
		return err, false
	}
	return fault.Errorf("%w; make the plan again with {on-bad-record} skip, or without the record, "+
		"and build its partitions into another {out}", err), true
}

// recordsPath is about a value on the path of the option Records.
func recordsPath(f Facts, err error) (error, bool) {
	if bad := f.record(err); bad == nil || !errors.Is(bad.Cause, cause.Records) {
		return err, false
	}
	return fault.Errorf("%w; give {records} another path, or leave such values out with {on-bad-record} skip",
		err), true
}

// recordsInside is about a value that may not be a record, but hold some.
func recordsInside(f Facts, err error) (error, bool) {
	bad := f.record(err)
	if bad == nil {
		return err, false
	}
	lists := recordLists(bad, &example.FieldError{}, f.inputOf(bad))
	if lists.IsZero() || !errors.Is(bad.Cause, cause.TooLarge) && !errors.Is(bad.Cause, chat.ErrShape) &&
		(f.Options.HasTemplate() || !errors.Is(bad.Cause, cause.UnknownField)) {
		return err, false
	}
	return fault.Errorf("%w; %v", err, lists), true
}

// tooLongToMap is about a record that is bad only because the command of Map gets it whole.
func tooLongToMap(f Facts, err error) (error, bool) {
	bad := f.record(err)
	if bad == nil || f.Options.Map == "" || !errors.Is(bad.Cause, cause.TooLarge) ||
		errors.Is(bad.Cause, example.ErrTooLarge) {
		return err, false
	}
	return fault.Errorf("%w; {map} gets whole records: leave longer ones out with {on-bad-record} skip", err), true
}

// tooLongToJudge is about a record that is bad only because filters judge it whole.
func tooLongToJudge(f Facts, err error) (error, bool) {
	bad := f.record(err)
	if bad == nil || !f.Options.JudgesDocuments() || f.Options.HasTemplate() || !errors.Is(bad.Cause, cause.TooLarge) {
		return err, false
	}
	return fault.Errorf("%w; filters and {dedup} judge whole documents: "+
		"leave longer ones out with {on-bad-record} skip, or build without filters and {dedup}", err), true
}

// badRecord is about any other record.
func badRecord(f Facts, err error) (error, bool) {
	bad := f.record(err)
	if bad == nil {
		return err, false
	}
	fix, after := "fix the record", fault.Plain("")
	if errors.Is(bad.Cause, example.ErrTemplate) || errors.Is(bad.Cause, chat.ErrTemplate) {
		fix = "fix the template or the record"
	}
	if f.Resumes {
		after = fault.Textf(", and %v: it resumes from its last checkpoint", f.Options.Same())
	}
	return fault.Errorf("%w; %s, or pass {on-bad-record} skip%s", err, fix, after), true
}

// failedCommand is about a command of the option Map that failed.
func failedCommand(f Facts, err error) (error, bool) {
	if !errors.Is(err, read.ErrCommand) {
		return err, false
	}
	return fault.Advise(err, "once it is fixed, %s", f.again()), true
}

package advice

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// A Stage is what a build was doing when an error ended it.
type Stage uint8

// The stages of a build.
const (
	Sources Stage = 1 << iota // opening the sources
	Folder                    // opening the folder of the dataset
	Rows                      // reading records and writing rows
)

// Facts are what is known about a build besides the error that ended it.
type Facts struct {
	Options   *option.Options
	Partition bool // the build is one of a plan's
	Resumes   bool // the same command resumes from a checkpoint
	// Fields are those of records that the options name; nil stands for all. CSV is recognized by them.
	Fields []string
	Sets   []*source.Set // opened so far
}

// list has all the advice in the order in which it is tried. The first that knows what to do ends the list;
// one that reports false may have added to the error, and lets the next ones add to that.
//
// What is wrong with all of a source comes before what is wrong with a record of it, since fixing one record
// does not help there. Of a record, the field that holds the text comes before the record's size and shape,
// and leaving the record out comes last, where nothing else is known. An error of the system may end any
// stage, and the same error may say that a file is damaged, so both may be added to one error.
var list = []struct {
	stages Stage
	advise func(Facts, error) (advised error, done bool)
}{
	{Sources, numberAsSource},
	{Rows, plannedRecord}, // no option of a partition leaves a record out
	{Sources | Rows, formatOfFile},
	{Rows, formatOfRecord},
	{Rows, wantedField},
	{Rows, notText},
	{Rows, recordsPath},
	{Rows, recordsInside},
	{Rows, tooLongToMap},
	{Rows, tooLongToJudge},
	{Rows, badRecord},
	{Rows, failedCommand},

	{Folder, noFolder},
	{Folder, otherSettings},
	{Folder, lockedFolder},
	{Folder, foreignFolder},
	{Folder, damagedFolder},

	{Sources, missingFile},
	{Sources, missingColumn},
	{Sources | Folder | Rows, systemError},
	{Sources | Rows, damagedSource},
}

// Of returns the error that ended a stage of a build, with what to do about it.
func Of(stage Stage, f Facts, err error) error {
	f.Resumes = f.Resumes && stage == Rows // before that there may be no checkpoint
	for _, entry := range list {
		if err == nil || entry.stages&stage == 0 {
			continue
		}
		advised, done := entry.advise(f, err)
		if done {
			return advised
		}
		err = advised
	}
	return err
}

// again is the advice to try once more.
func (f *Facts) again() fault.Text {
	if f.Resumes {
		return fault.Textf("%v, it resumes from its last checkpoint", f.Options.Same())
	}
	return fault.Plain("run the same command again")
}

// systemError is about an error of the system. None loses what was checkpointed.
func systemError(f Facts, err error) (error, bool) {
	again := f.again()
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	_, isInput := errors.AsType[*cause.InputError](err)
	if _, changed := errors.AsType[*cause.ChangedError](err); changed {
		return err, true // it says what to do
	}
	switch {
	case is(dataset.ErrShardList):
		err = fault.Errorf("%w (%w); raise {memory} and %s, or start afresh with larger {shard-bytes}", err,
			read.ErrMemory, again)
	case is(syscall.ENOSPC, syscall.EDQUOT):
		err = fault.Errorf("%w; make room there and %s", err, again)
	case is(syscall.EFBIG):
		err = fault.Errorf("%w; raise the limit on the size of files (ulimit -f) and %s, "+
			"or start afresh with smaller {shard-bytes}", err, again)
	case isInput && is(syscall.EIO, syscall.ESTALE, fs.ErrPermission):
		err = fault.Errorf("%w; once it can be read again, %s", err, again)
	case is(syscall.EIO, syscall.ESTALE):
		err = fault.Errorf("%w; once the file system works again, %s", err, again)
	case is(fs.ErrPermission, syscall.EROFS):
		err = fault.Errorf("%w; make the folder writable and %s, or choose another {out}", err, again)
	}
	return err, false
}

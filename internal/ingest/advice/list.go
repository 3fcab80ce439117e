package advice

import (
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
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
	{Sources, formatOfFile},
	{Rows, formatOfRecord},
	{Rows, wantedField},
	{Rows, notText},
	{Rows, recordsPath},
	{Rows, recordsInside},
	{Rows, tooLongToMap},
	{Rows, tooLongToJudge},
	{Rows, badRecord},

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

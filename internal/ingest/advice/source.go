package advice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/spelling"
)

// numberAsSource is about a number in place of a source of the split val, as other tools take it.
func numberAsSource(f Facts, err error) (error, bool) {
	missing, ok := errors.AsType[*cause.InputError](err)
	if !ok || !errors.Is(err, fs.ErrNotExist) || !slices.Contains(f.Options.ValSources, missing.URI) {
		return err, false
	}
	if _, notNumber := strconv.ParseFloat(missing.URI, 64); notNumber != nil {
		return err, false
	}
	return fault.BadOption("val", missing.URI, "it takes a source of its own; to hold out N of the training examples "+
		"write {max-val-examples} N"), true
}

// formatOfFile is about a file that is in another format than the one that was given, or that its name says.
func formatOfFile(f Facts, err error) (error, bool) {
	if input, ok := errors.AsType[*cause.InputError](err); ok {
		return f.otherFormat(err, input.URI)
	}
	return err, false
}

// formatOfRecord is about the first record of a file that is in another format.
func formatOfRecord(f Facts, err error) (error, bool) {
	if bad := f.record(err); bad != nil && bad.Row == 1 && bad.Member == "" && !errors.Is(err, example.ErrTooDeep) {
		return f.otherFormat(err, bad.URI)
	}
	return err, false
}

// otherFormat adds to the error about a file the format that it is in, where that is another one.
func (f *Facts) otherFormat(err error, uri string) (error, bool) {
	if info, failed := os.Stat(uris.Path(uri)); failed != nil || !info.Mode().IsRegular() {
		return err, false // a pipe was read already, and opening it again waits for who writes into it
	}
	recognized, unknown := formatOf(source.Options{Args: []string{uri}})
	if unknown != nil {
		return err, false
	}
	if isOther(recognized, f.Options.Format) {
		return fault.Errorf("%w; it looks like %s: leave {format} out", err, recognized), true
	}
	if found := f.misnamed(uri, recognized); found != "" {
		return fault.Errorf("%w; it looks like %s, whatever its name says: pass {format} %s", err, found, found), true
	}
	return err, false
}

// isOther reports whether a file that is recognized as the format found cannot be in the one that was given. A
// column of text by another name looks like text, so that the advice for CSV is only given where the records are
// objects. Package source itself says that a file is Parquet or Arrow.
func isOther(found, given source.Format) bool {
	switch given {
	case source.JSONL, source.JSON, source.CSV, source.Parquet, source.Arrow:
		return found != given && (given != source.CSV || found != source.Text) &&
			found != source.Parquet && found != source.Arrow
	}
	return false
}

// misnamed returns the format of the records of a file of this machine by its content alone, if it is read as
// another one, named, because of its name, else "". Almost anything is text, a damaged record too.
func (f *Facts) misnamed(uri string, named source.Format) source.Format {
	if given := f.Options.Format; given != source.Auto && given != named ||
		!slices.Contains([]source.Format{source.JSONL, source.JSON, source.CSV}, named) {
		return ""
	}
	file, err := os.Open(uris.Path(uri))
	if err != nil {
		return ""
	}
	defer file.Close()
	found, err := formatOf(source.Options{Args: []string{"-"}, Places: source.Places{Stdin: file},
		Framing: source.Framing{Fields: f.Fields}})
	if err != nil || found == named || found == source.Text {
		return ""
	}
	return found
}

// formatOf returns the format that the only input is recognized as.
func formatOf(o source.Options) (source.Format, error) {
	set, err := source.Open(context.Background(), o)
	if err != nil {
		return "", err
	}
	defer set.Close()
	in, err := set.Input(0)
	if err == nil && set.Len() != 1 {
		err = cause.Usage
	}
	return in.Format, err
}

// missingFile names the neighbour of a missing file that was probably meant.
func missingFile(_ Facts, err error) (error, bool) {
	missing, ok := errors.AsType[*cause.InputError](err)
	if !ok || !errors.Is(missing.Err, fs.ErrNotExist) || missing.Hint != "" || uris.IsRemote(missing.URI) {
		return err, false
	}
	if _, failed := os.Lstat(uris.Path(missing.URI)); failed == nil {
		missing.Hint = "it is a link that leads nowhere"
	} else if near := spelling.NearestFile(missing.URI); near != "" {
		missing.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return err, false
}

// damagedSource is about a source of which a part cannot be read.
func damagedSource(f Facts, err error) (error, bool) {
	input, ok := errors.AsType[*cause.InputError](err)
	switch {
	case f.Options.OnBadRecord == option.SkipBadRecord || !ok || !input.Damaged:
		return err, false
	case errors.Is(err, cause.Malformed):
		return fault.Advise(err, "fix it, or leave out what cannot be read with {on-bad-record} skip"), true
	}
	return fault.Advise(err, "or leave out what cannot be read with {on-bad-record} skip"), true
}

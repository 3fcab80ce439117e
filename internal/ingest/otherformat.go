package ingest

import (
	"context"
	"errors"
	"os"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// adviseFormat adds to the error about a file, or its first record, that the file is in another format than the
// one that was given, or that its name says: fixing or skipping each record would not help. It returns nil where
// that is not so.
func (b *build) adviseFormat(err error) error {
	var uri string
	var input *source.InputError
	var record *source.RecordError
	switch {
	case errors.As(err, &record) && record.Row == 1 && record.Member == "":
		uri = record.URI
	case errors.As(err, &input):
		uri = input.URI
	}
	if info, err := os.Stat(source.PathOf(uri)); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe was read already, and opening it again waits for who writes into it
	}
	recognized, unknown := formatOf(source.Options{Args: []string{uri}})
	if unknown != nil {
		return nil
	}
	if found := b.otherFormat(recognized); found != "" {
		return fault.Errorf("%w; it looks like %s: leave {format} out", err, found)
	}
	if found := b.misnamed(uri, recognized); found != "" {
		return fault.Errorf("%w; it looks like %s, whatever its name says: pass {format} %s", err, found, found)
	}
	return nil
}

// misnamed returns the format of the records of a file of this machine by its content alone, if it is read as
// another one, named, because of its name, else "". Almost anything is text, a damaged record too.
func (b *build) misnamed(uri string, named source.Format) source.Format {
	if b.opts.Format != source.Auto && b.opts.Format != named {
		return ""
	}
	switch named {
	case source.JSONL, source.JSON, source.CSV:
	default:
		return ""
	}
	file, err := os.Open(source.PathOf(uri))
	if err != nil {
		return ""
	}
	defer file.Close()
	o := source.Options{Args: []string{"-"}, Stdin: file}
	if len(b.phases) > 0 {
		o.Fields = b.phases[0].options.Fields // CSV is recognized by them
	}
	found, err := formatOf(o)
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

// otherFormat returns the format found that a file is recognized as, if another one was given and the file cannot
// be in that, else "". A column of text by another name looks like text, so that the advice for CSV is only given
// where the records are objects.
func (b *build) otherFormat(found source.Format) source.Format {
	given := b.opts.Format
	switch given {
	case source.JSONL, source.JSON, source.CSV, source.Parquet, source.Arrow:
	default:
		return ""
	}
	switch {
	case found == given, given == source.CSV && found == source.Text:
		return ""
	case found == source.Parquet, found == source.Arrow:
		return "" // package source says so itself
	}
	return found
}

package ingest

import (
	"context"
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
)

// adviseFormat adds to the error about a file, or its first record, that the file is in another format than the
// one that was given: fixing or skipping each record would not help. It returns nil where that is not so.
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
	if found := b.otherFormat(uri); found != "" {
		return fault.Errorf("%w; it looks like %s: leave {format} out", err, found)
	}
	return nil
}

// otherFormat returns the format that a file of this machine is recognized as, if another one was given and the
// file cannot be in that, else "". A column of text by another name looks like text, so that the advice for
// CSV is only given where the records are objects.
func (b *build) otherFormat(uri string) source.Format {
	given := b.opts.Format
	switch given {
	case source.JSONL, source.JSON, source.CSV, source.Parquet, source.Arrow:
	default:
		return ""
	}
	if uri == "" || uri == "-" || source.IsRemote(uri) {
		return ""
	}
	set, err := source.Open(context.Background(), source.Options{Args: []string{uri}})
	if err != nil {
		return ""
	}
	defer set.Close()
	in, err := set.Input(0)
	switch {
	case err != nil, set.Len() != 1, in.Format == given, given == source.CSV && in.Format == source.Text:
		return ""
	case in.Format == source.Parquet, in.Format == source.Arrow:
		return "" // package source says so itself
	}
	return in.Format
}

package ingest

import (
	"context"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/command"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source"
)

// checkMap returns an error for a command that cannot be run.
func (b *build) checkMap(context.Context) error {
	if b.opts.Map == "" {
		return nil
	}
	if err := command.Find(b.opts.Map); err != nil {
		return fault.BadOption("map", b.opts.Map, "%v; give a command that sh can run, "+
			"which answers each line of its standard input with a line", err)
	}
	return nil
}

// startMap runs the command for the records of a reader, whose inputs have names by their numbers.
func (b *build) startMap(pipeline, wanted context.Context, reader *source.Reader, uri func(input int) string,
	f *flusher) (*read.Mapping, error) {
	return read.StartMap(pipeline, wanted, read.MapConfig{Command: b.opts.Map, Out: b.opts.Out, URI: uri, Reader: reader,
		Rows: b.current.formatter.NewWorker(), Notice: b.notice, Answered: f.state.Answered, Resume: f.state.Position})
}

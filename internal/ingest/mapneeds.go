package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/command"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source/cause"
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

// mapShares returns the share of the memory cap that Map takes, none without it.
func mapShares(o *option.Options) []budget.Share {
	if o.Map == "" {
		return nil
	}
	n := int64(command.MemoryBytes + mapBufferBytes + mapAhead*queuedBytes + 2*maxRecordBytes)
	return []budget.Share{{Name: "map", Bytes: n,
		Why: fmt.Sprintf("a record and an answer of up to %dMiB, and up to %d records that wait for theirs; the command's "+
			"own memory is not part of the cap", maxRecordBytes>>20, mapAhead)}}
}

// tooLongToMap reports whether a record is bad only because it was wanted whole.
func (b *build) tooLongToMap(err error) bool {
	return b.opts.Map != "" && errors.Is(err, cause.TooLarge) && !errors.Is(err, example.ErrTooLarge)
}

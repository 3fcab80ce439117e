package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/shard"
)

// advise adds what to do next to a system error that ended a build. None of these errors loses what
// was checkpointed.
func advise(err error) error {
	const again = "run the same command again, it resumes from its last checkpoint"
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	var input *source.InputError
	var changed *source.SourceChangedError
	switch {
	case errors.As(err, &changed):
		return err // the error says what to do
	case is(shard.ErrShardList):
		return fault.Errorf("%w (%w); raise {memory} and %s, or start afresh with larger {shard-bytes}", err,
			read.ErrMemory, again)
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return fmt.Errorf("%w; make room there and %s", err, again)
	case is(syscall.EFBIG):
		return fault.Errorf("%w; raise the limit on the size of files (ulimit -f) and %s, "+
			"or start afresh with smaller {shard-bytes}", err, again)
	case errors.As(err, &input) && is(syscall.EIO, syscall.ESTALE, fs.ErrPermission):
		return fmt.Errorf("%w; once it can be read again, %s", err, again)
	case is(syscall.EIO, syscall.ESTALE):
		return fmt.Errorf("%w; once the file system works again, %s", err, again)
	case is(fs.ErrPermission, syscall.EROFS):
		return fault.Errorf("%w; make the folder writable and %s, or choose another {out}", err, again)
	}
	return err
}

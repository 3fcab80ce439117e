package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// systemError is about an error of the system. None loses what was checkpointed.
func systemError(f Facts, err error) (error, bool) {
	again := "run the same command again"
	if f.Resumes {
		again += ", it resumes from its last checkpoint"
	}
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
		err = fmt.Errorf("%w; make room there and %s", err, again)
	case is(syscall.EFBIG):
		err = fault.Errorf("%w; raise the limit on the size of files (ulimit -f) and %s, "+
			"or start afresh with smaller {shard-bytes}", err, again)
	case isInput && is(syscall.EIO, syscall.ESTALE, fs.ErrPermission):
		err = fmt.Errorf("%w; once it can be read again, %s", err, again)
	case is(syscall.EIO, syscall.ESTALE):
		err = fmt.Errorf("%w; once the file system works again, %s", err, again)
	case is(fs.ErrPermission, syscall.EROFS):
		err = fault.Errorf("%w; make the folder writable and %s, or choose another {out}", err, again)
	}
	return err, false
}

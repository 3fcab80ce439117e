package listing

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/remote"
)

// Cause returns what a failure of the remote package means for an input. offset counts its
// text; it is -1 if none was read.
func Cause(uri string, offset int64, err error) error {
	var changed *remote.ChangedError
	var own *remote.Error
	switch {
	case errors.As(err, &changed):
		return &cause.ChangedError{URI: uri, What: changed.What, Was: changed.Was, Is: changed.Is}
	case errors.Is(err, remote.ErrUsage), offset < 0 && errors.Is(err, remote.ErrNoBucket):
		return cause.Unread(remote.Redact(uri), fault.Of(cause.Usage, "%s", err))
	case errors.As(err, &own):
		return &cause.InputError{URI: uri, Offset: offset, Err: err}
	}
	return err
}

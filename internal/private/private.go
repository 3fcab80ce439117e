// Package private looks at folders in which a user keeps what others must not exchange: whose they are, and who
// may write into them. On systems without such owners and modes it finds nothing wrong.
package private

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/dsload/dsload/internal/fault"
)

// An AccessError means that other users may have written what is in a folder, or may exchange it.
type AccessError struct {
	Dir   string
	Owner int // id of the user
	Mode  fs.FileMode
}

func (e *AccessError) Error() string { return e.Dir + ": " + e.Why() }

// Why returns the error without the folder's name.
func (e *AccessError) Why() string {
	switch {
	case e.Mode&fs.ModeSymlink != 0:
		return "it is a link, and must be a folder"
	case !e.Mode.IsDir():
		return "it is not a folder"
	case e.Writable():
		return fmt.Sprintf("its mode is %04o, so other users may write into it", e.Mode.Perm())
	}
	return fmt.Sprintf("it belongs to the user with id %d, not to %d", e.Owner, os.Geteuid())
}

// Writable reports whether the folder is the user's own, and only its mode is wrong.
func (e *AccessError) Writable() bool {
	return e.Owner == os.Geteuid() && e.Mode.Perm()&othersWrite != 0
}

// Kind returns fault.Usage.
func (e *AccessError) Kind() string { return fault.Usage }

const othersWrite = 0o022

package textcache

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/dsload/dsload/internal/fault"
)

// An AccessError means that other users may have written what a cache would serve.
type AccessError struct {
	Dir   string
	Owner int // id of the user
	Mode  fs.FileMode
	Entry bool // Dir is a dataset of the cache, not its folder
}

func (e *AccessError) Error() string {
	why := fmt.Sprintf("it belongs to the user with id %d, not to %d", e.Owner, os.Geteuid())
	if e.Owner == os.Geteuid() {
		why = fmt.Sprintf("its mode is %04o, so other users may write into it", e.Mode.Perm())
	}
	switch {
	case e.Entry && e.Mode&fs.ModeSymlink != 0:
		return fmt.Sprintf("%s: it is a link, where the cache makes folders", e.Dir)
	case e.Entry:
		return fmt.Sprintf("%s: %s", e.Dir, why)
	case e.Owner != os.Geteuid():
		return fmt.Sprintf("the cache %s: %s; set DSLOAD_CACHE to a folder of your own", e.Dir, why)
	}
	return fmt.Sprintf("the cache %s: %s and plant a dataset; empty it and make it yours alone with chmod 700, "+
		"or set DSLOAD_CACHE to a folder of your own", e.Dir, why)
}

// Kind returns fault.Usage.
func (e *AccessError) Kind() string { return fault.Usage }

// Prepare makes the cache's folder if it is not there. It returns an *AccessError if others may write
// into it: what they plant would be served as this user's text.
func (c *Cache) Prepare() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make the cache: %w; set DSLOAD_CACHE to a writable folder", err)
	}
	return checkAccess(c.Dir)
}

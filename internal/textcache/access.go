package textcache

import (
	"errors"
	"fmt"
	"os"

	"github.com/dsload/dsload/internal/private"
)

// Prepare makes the cache's folder if it is not there. It returns a *private.AccessError if others may write
// into it: what they plant would be served as this user's text.
func (c *Cache) Prepare() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("make the cache: %w; set DSLOAD_CACHE to a writable folder", err)
	}
	err := private.Folder(c.Dir)
	switch access, ok := errors.AsType[*private.AccessError](err); {
	case !ok:
		return err
	case access.Writable():
		return fmt.Errorf("the cache %w and plant a dataset; empty it and make it yours alone with chmod 700, "+
			"or set DSLOAD_CACHE to a folder of your own", err)
	}
	return fmt.Errorf("the cache %w; set DSLOAD_CACHE to a folder of your own", err)
}

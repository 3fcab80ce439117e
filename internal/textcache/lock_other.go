//go:build !unix || solaris || illumos || aix

package textcache

import (
	"errors"
	"os"
)

// tryLock fails: this system has no locks that end with their process.
func tryLock(string, bool) (*os.File, error) {
	return nil, errors.New("this system has no file locks that the cache can use; " +
		"build the text into a folder and serve that")
}

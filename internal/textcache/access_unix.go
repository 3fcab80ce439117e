//go:build unix

package textcache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// checkAccess returns an *AccessError if other users may write into the cache's folder, and so plant
// what this one is served.
func checkAccess(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner := ownerOf(info); owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return &AccessError{Dir: dir, Owner: owner, Mode: info.Mode()}
	}
	return nil
}

// checkEntry returns an *AccessError if a folder of the cache exists and belongs to another user, or is
// a link.
func checkEntry(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner := ownerOf(info); owner != os.Geteuid() || !info.IsDir() {
		return &AccessError{Dir: dir, Owner: owner, Mode: info.Mode(), Entry: true}
	}
	return nil
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

//go:build linux || darwin

package store

import (
	"os"
	"syscall"
)

// diskLeft returns how many bytes the disk of a file has left for this user, -1 if that is unknown.
func diskLeft(f *os.File) int64 {
	var s syscall.Statfs_t
	if syscall.Fstatfs(int(f.Fd()), &s) != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize)
}

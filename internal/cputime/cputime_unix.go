//go:build unix

package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Process returns the user and system time of this process so far.
func Process() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // RUSAGE_SELF is valid on every unix
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

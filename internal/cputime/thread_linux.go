package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Thread returns the CPU time of the calling thread, which the caller has locked itself to.
func Thread() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux that Go runs on has this clock
	}
	return time.Duration(t.Nano())
}

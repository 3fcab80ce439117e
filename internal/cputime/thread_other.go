//go:build !linux

package cputime

import "time"

// Thread returns the time of Process, since a thread's is not available here.
func Thread() time.Duration { return Process() }

//go:build !unix && !windows

package cputime

import "time"

var began = time.Now()

// Process returns wall-clock time, since CPU time is not available here.
func Process() time.Duration { return time.Since(began) }

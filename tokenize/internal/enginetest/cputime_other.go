//go:build !unix

package enginetest

import "time"

var began = time.Now()

// CPUTime returns wall-clock time, since CPU time is not available here.
func CPUTime() time.Duration { return time.Since(began) }

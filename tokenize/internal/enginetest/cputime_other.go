//go:build !unix

package enginetest

import "time"

var began = time.Now()

// CPUTime stands in with the time on the clock where CPU time is not to be had.
func CPUTime() time.Duration { return time.Since(began) }

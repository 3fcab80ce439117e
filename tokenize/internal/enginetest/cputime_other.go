//go:build !unix

package enginetest

import "time"

var began = time.Now()

// cpuTime stands in with the time on the clock where CPU time is not to be had.
func cpuTime() time.Duration { return time.Since(began) }

//go:build !unix

package source

import "time"

// cpuSeconds returns the time of day, since the processor time is not available here.
func cpuSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }

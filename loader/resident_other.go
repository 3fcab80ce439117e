//go:build !linux

package loader

import "runtime"

// residentBytes approximates the resident set by what the Go runtime took from the system.
func residentBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

func peakResidentBytes() int64 { return residentBytes() }

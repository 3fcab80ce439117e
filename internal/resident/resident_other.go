//go:build !linux

package resident

import "runtime"

// Bytes approximates the resident set size by the memory that the Go runtime took from the system.
func Bytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

func Peak() int64 { return Bytes() }

// DropProgram does nothing: only Linux says which pages are the program's.
func DropProgram() {}

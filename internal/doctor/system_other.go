//go:build !linux

package doctor

import "github.com/KimMachineGun/automemlimit/memlimit"

// systemMemory returns the machine's memory. How much of it is available is unknown here.
func systemMemory() (total, available int64) {
	limit, err := memlimit.FromSystem()
	if err != nil {
		return 0, 0
	}
	return int64(limit), int64(limit)
}

// spaceOf returns nil: the space of a file system is unknown here.
func spaceOf(string) *space { return nil }

package doctor

import (
	"syscall"

	"github.com/dsload/dsload/internal/resident"
)

// systemMemory returns the machine's memory and how much of it is available, 0 if unknown.
func systemMemory() (total, available int64) {
	return resident.Listed("/proc/meminfo", "MemTotal:"), resident.Listed("/proc/meminfo", "MemAvailable:")
}

// spaceOf returns the space of a path's file system; nil if it has none.
func spaceOf(path string) *space {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return nil
	}
	block := int64(s.Bsize) // its type differs between machines
	return &space{path, int64(s.Blocks) * block, int64(s.Bavail) * block}
}

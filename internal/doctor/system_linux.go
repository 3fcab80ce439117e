package doctor

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// systemMemory returns the machine's memory and how much of it is available, 0 if unknown.
func systemMemory() (total, available int64) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(string(fields[1]), 10, 64)
		switch {
		case err != nil:
		case string(fields[0]) == "MemTotal:":
			total = kib << 10
		case string(fields[0]) == "MemAvailable:":
			available = kib << 10
		}
	}
	return total, available
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

package resident

import (
	"bytes"
	"os"
	"strconv"
)

// Bytes returns the resident set size of this process (VmRSS of /proc/self/status), 0 if it cannot
// be read.
func Bytes() int64 { return Listed("/proc/self/status", "VmRSS:") }

// Peak returns the largest resident set size that this process has had (VmHWM).
func Peak() int64 { return Listed("/proc/self/status", "VmHWM:") }

// Listed returns what a file such as /proc/meminfo lists under a name, in bytes; 0 if it cannot be read.
func Listed(file, field string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte(field)); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				kib, _ := strconv.ParseInt(string(f[0]), 10, 64)
				return kib << 10
			}
		}
	}
	return 0
}

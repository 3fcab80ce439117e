package loader

import (
	"bytes"
	"os"
	"strconv"
)

// residentBytes is the resident set of this process now (VmRSS of /proc/self/status), 0 where it cannot be read.
func residentBytes() int64 { return statusBytes("VmRSS:") }

// peakResidentBytes is the largest resident set that this process had (VmHWM).
func peakResidentBytes() int64 { return statusBytes("VmHWM:") }

func statusBytes(field string) int64 {
	data, err := os.ReadFile("/proc/self/status")
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

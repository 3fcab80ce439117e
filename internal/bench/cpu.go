package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// processCPU returns a process's user and system time so far in seconds, or 0 if unknown. The
// kernel counts hundredths.
func processCPU(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field, the program's name in parentheses, may hold any character. utime and stime
	// are fields 14 and 15.
	_, rest, found := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0
	}
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		ticks += n
	}
	const ticksPerSecond = 100 // USER_HZ on every Linux
	return float64(ticks) / ticksPerSecond
}

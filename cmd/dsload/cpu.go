package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// processCPU is the user and system time of a process so far in seconds, 0 where the system does not say. The kernel counts in hundredths.
func processCPU(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses, which may hold anything; utime and stime are the 14th and 15th.
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

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

//go:build unix

package bench

import (
	"os"
	"runtime"
	"syscall"
)

// peakOfEnded returns the largest resident set size of a process that ended, 0 if it is unknown.
func peakOfEnded(ended *os.ProcessState) int64 {
	if u, ok := ended.SysUsage().(*syscall.Rusage); ok {
		return peakBytes(u)
	}
	return 0
}

// ownPeak returns the largest resident set size of this process so far, 0 if it is unknown.
func ownPeak() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return peakBytes(&u)
}

func peakBytes(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" { // counts bytes, the others KiB
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

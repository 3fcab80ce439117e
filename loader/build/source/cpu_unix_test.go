//go:build unix

package source

import "syscall"

// cpuSeconds returns the processor time of this process, which is comparable on a loaded machine
// too.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

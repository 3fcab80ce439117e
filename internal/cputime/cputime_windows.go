package cputime

import (
	"time"

	"golang.org/x/sys/windows"
)

// Process returns the user and system time of this process so far.
func Process() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		panic(err) // a process may always ask about itself
	}
	return ticks(kernel) + ticks(user)
}

// ticks counts intervals of 100 ns.
func ticks(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

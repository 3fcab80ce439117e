package main

import (
	"github.com/dsload/dsload/internal/fault"
)

// A limit on address space (ulimit -v, RLIMIT_AS) counts reserved memory, not used memory, and Go's
// runtime and the C library reserve a lot. A process that reaches the limit ends with a traceback,
// so the limit is checked first.
const (
	// runtimeAddresses is the address space that a process reserves when it starts, as measured.
	runtimeAddresses = 1 << 30
	// threadAddresses is the address space that a thread reserves: its stack, and an arena of the C
	// library's allocator.
	threadAddresses = 72 << 20
	// otherThreads is the number of threads that GOMAXPROCS does not count: those in system calls,
	// and the runtime's own.
	otherThreads = 8
)

// procsWithin returns how many threads may run at once within a limit on address space, together with a memory cap:
// at least 1.
func procsWithin(limit, capBytes int64) int {
	return int(max(1, (limit-runtimeAddresses-capBytes)/threadAddresses-otherThreads))
}

// checkAddresses returns an error if a limit on address space is too small for a memory cap. 0
// means no limit.
func checkAddresses(limit, capBytes int64) error {
	if least := capBytes + runtimeAddresses + (1+otherThreads)*threadAddresses; limit > 0 && limit < least {
		return fault.Kindf(fault.Limit, "start: the address space is limited to %s (ulimit -v), "+
			"and --memory %s takes up to %s of it, since more is reserved than used; "+
			"raise that limit, or lower --memory",
			formatSize(limit), formatSize(capBytes), formatSize(least))
	}
	return nil
}

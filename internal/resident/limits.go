package resident

import (
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// largestDefaultMemory is the default cap on machines with enough memory: a build runs at full
// speed with it.
const largestDefaultMemory = 256 << 20

// DefaultMemory returns the default cap in bytes: the smaller of 256 MiB and half of Limit.
func DefaultMemory() int64 {
	if n := Limit(); n > 0 {
		return min(n/2, largestDefaultMemory)
	}
	return largestDefaultMemory
}

// Limit returns what the control group (v1 or v2) or the machine allows in bytes, 0 if neither says.
func Limit() int64 { return limit() }

// limit reads the files of the control group once: every option's flag asks for its default.
var limit = sync.OnceValue(func() int64 {
	group, err := memlimit.FromCgroup()
	if system, systemErr := memlimit.FromSystem(); systemErr == nil && (err != nil || system < group) {
		return int64(system)
	}
	if err != nil {
		return 0
	}
	return int64(group)
})

// RuntimeLimit returns the soft limit of the Go runtime (GOMEMLIMIT) for a memory cap: the cap
// without the program's own pages, which the runtime does not count, and without what a heap may be over
// the limit before a collection is through.
func RuntimeLimit(capBytes, programBytes int64) int64 {
	return max(capBytes-programBytes-capBytes/64, capBytes/2)
}

package loader

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
)

// largestDefaultMemory is the default cap on machines with memory to spare: a build needs no more to run at full speed.
const largestDefaultMemory = 256 << 20

// DefaultMemory is the cap where none is given, in bytes: the smaller of 256 MiB and half of what the control group (v1 or v2) or the machine allows.
func DefaultMemory() int64 {
	limit, err := memlimit.FromCgroup()
	if system, systemErr := memlimit.FromSystem(); systemErr == nil && (err != nil || system < limit) {
		limit, err = system, nil
	}
	if err != nil {
		return largestDefaultMemory
	}
	return int64(min(limit/2, largestDefaultMemory))
}

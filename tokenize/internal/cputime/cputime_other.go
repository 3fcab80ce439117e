//go:build !unix

package cputime

import "time"

var began = time.Now()

// Process returns wall-clock time: CPU time takes more than the standard library here.
func Process() time.Duration { return time.Since(began) }

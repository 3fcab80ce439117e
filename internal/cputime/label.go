package cputime

import (
	"context"
	"runtime/pprof"
)

// Alone is the label of the samples of a CPU profile that names a goroutine by what no other one does beside it.
const Alone = "alone"

// Label names the calling goroutine, and those that it starts, in CPU profiles. "" stands for work that any number of
// goroutines share.
func Label(name string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(Alone, name)))
}

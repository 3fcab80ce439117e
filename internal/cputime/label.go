package cputime

import (
	"context"
	"runtime/pprof"
)

// Alone is the label of the samples of a CPU profile that names a goroutine by what no other one does beside it.
const Alone = "alone"

// A Goroutine is a name for goroutines in CPU profiles.
type Goroutine struct{ label context.Context }

// Label names the calling goroutine, and those that it starts from here on. "" stands for work that any number of
// goroutines share.
func Label(name string) { Named(name).Set() }

// Named returns a name for goroutines that start often.
func Named(name string) Goroutine {
	return Goroutine{pprof.WithLabels(context.Background(), pprof.Labels(Alone, name))}
}

// Set is Label.
func (g Goroutine) Set() { pprof.SetGoroutineLabels(g.label) }

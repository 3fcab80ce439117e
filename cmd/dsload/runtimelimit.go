package main

import (
	"runtime"
	"runtime/debug"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/resident"
)

// This file sets what the Go runtime does for the whole process: its memory, its garbage and its cores.

// gcPercent returns the amount of garbage that triggers a collection, as a percentage of the memory in
// use. A build of lines makes almost none once its buffers exist: collections are rare, and the garbage
// of its start does not stay up to the limit. A build of conversations makes much, and is faster if the
// cap leaves room for it.
func gcPercent(capBytes int64) int {
	if capBytes < roomyCap {
		return 20
	}
	return 50
}

// roomyCap is the smallest cap under which garbage may grow for longer between collections. Under a smaller one, a
// collection that a busy machine runs late would let the heap reach the runtime's limit, which is soft.
const roomyCap = 128 << 20

// setRuntimeLimit sets the Go runtime's soft limit below the cap, as a backstop: the byte ledger
// enforces the cap. It is here and not in a library package because it acts on the whole process.
func setRuntimeLimit(capBytes int64) {
	limitRuntime(capBytes, gcPercent(capBytes), gcPercent(capBytes))
}

// setSoftLimit is setRuntimeLimit for commands that read a dataset through buffers of fixed sizes, far below
// the limit. They may have more garbage: collecting it every MiB took an eighth of an export's time.
func setSoftLimit(limit int64) { limitRuntime(limit, 75, 75) }

// limitRuntime sets the limit, and the garbage that triggers a collection as a percentage of the memory in use:
// the first one, and those that follow.
func limitRuntime(capBytes int64, first, then int) {
	debug.SetMemoryLimit(resident.RuntimeLimit(capBytes))
	debug.SetGCPercent(first)
	if then != first {
		runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, then)
	}
	fitThreads(addressLimit(), capBytes)
}

// prepareProcess sets the limits of this process for a build or a plan. restore undoes what others in
// the process would notice.
func prepareProcess(o *option.Options) (restore func(), err error) {
	if err := checkAddresses(addressLimit(), o.Memory); err != nil {
		return nil, err
	}
	collectLater(o.Memory, firstBuildHeap(o.Memory))
	return useCores(o.Workers), nil
}

// useCores lets Go run on as many cores as there are workers, 0 for all of them, until the function that it returns
// is called. The reader and the flusher take their turns there: --workers 1 takes one core, and its stages find
// each other's data in that core's cache.
func useCores(workers int) (restore func()) {
	all := runtime.GOMAXPROCS(0)
	if workers < 1 || workers >= all {
		return func() {}
	}
	runtime.GOMAXPROCS(workers)
	return func() { runtime.GOMAXPROCS(all) }
}

// collectLater is setRuntimeLimit for a start that is to be short: the heap grows to firstHeap before the
// first collection. What a build or a server allocates at its start stays; a dozen collections of a few
// MiB would find next to nothing, and took a third of the time of a short build.
func collectLater(capBytes, firstHeap int64) {
	const leastHeap = 4 << 20 // that the runtime collects, times the percentage
	limitRuntime(capBytes, max(gcPercent(capBytes), int(100*firstHeap/leastHeap)), gcPercent(capBytes))
}

// firstBuildHeap is the heap of a build before the first collection.
func firstBuildHeap(capBytes int64) int64 {
	if capBytes < roomyCap {
		return 0
	}
	return 16 << 20
}

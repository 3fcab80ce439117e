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

// firstHeap is the heap at the first collection, where a cap allows it.
const firstHeap = 16 << 20

// setRuntimeLimit sets the Go runtime's soft limit below the cap, as a backstop: the byte ledger
// enforces the cap. It is here and not in a library package because it acts on the whole process.
func setRuntimeLimit(capBytes int64) {
	limitRuntime(capBytes, builderBytes, gcPercent(capBytes), gcPercent(capBytes))
}

// The pages of the program that are resident in a build or a merge, in commands that run less of it, and in a server,
// which has dropped the rest.
const builderBytes, readerBytes, serverBytes = 20 << 20, 14 << 20, 12 << 20

// setSoftLimit is setRuntimeLimit for commands that read a dataset through buffers of fixed sizes, far below
// the limit. They may have more garbage: collecting it every MiB took an eighth of an export's time.
func setSoftLimit(limit int64) { limitRuntime(limit, readerBytes, 75, 75) }

// setBuildLimit is setRuntimeLimit for builds and plans. Where the cap is roomy, the first collection comes late:
// what a build allocates at its start stays, and a dozen collections of a few MiB would find next to
// nothing. They took a third of the time of a short build.
func setBuildLimit(capBytes int64) {
	first := gcPercent(capBytes)
	if capBytes >= roomyCap {
		first = heapPercent(firstHeap)
	}
	limitRuntime(capBytes, builderBytes, first, gcPercent(capBytes))
}

// setServerLimit is setRuntimeLimit for a server. What it allocates before its first batch stays, and so do the
// record batches that its heap grows by: there is little garbage for collections to find.
func setServerLimit(capBytes int64) {
	limitRuntime(capBytes, serverBytes, heapPercent(min(capBytes/8, firstHeap)), 40)
}

// heapPercent returns the percentage at which the first collection comes once the heap has so many bytes.
func heapPercent(heap int64) int {
	const least = 4 << 20 // the smallest heap that the runtime collects, at 100%
	return int(100 * heap / least)
}

// limitRuntime sets the limit, and the garbage that triggers a collection as a percentage of the memory in use:
// the first one, and those that follow.
func limitRuntime(capBytes, programBytes int64, first, then int) {
	debug.SetMemoryLimit(resident.RuntimeLimit(capBytes, programBytes))
	debug.SetGCPercent(first)
	if then != first {
		runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, then)
	}
	if limit := addressLimit(); limit > 0 && procsWithin(limit, capBytes) < runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(procsWithin(limit, capBytes))
	}
}

// prepareProcess sets the limits of this process for a build or a plan. restore undoes what others in
// the process would notice.
func prepareProcess(o *option.Options) (restore func(), err error) {
	if err := checkAddresses(addressLimit(), o.Memory); err != nil {
		return nil, err
	}
	setBuildLimit(o.Memory)
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

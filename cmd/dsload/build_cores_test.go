package main

import (
	"runtime"
	"testing"
)

func TestUseCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for workers, want := range []int{3, 1, 2, 3, 3} {
		restore := useCores(workers)
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%d workers: %d cores, want %d", workers, got, want)
		}
		restore()
		if got := runtime.GOMAXPROCS(0); got != 3 {
			t.Errorf("after a build with %d workers: %d cores, want 3", workers, got)
		}
	}
}

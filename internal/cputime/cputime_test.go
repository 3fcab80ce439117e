package cputime_test

import (
	"runtime"
	"testing"

	"github.com/dsload/dsload/internal/cputime"
)

// Work moves both clocks forwards.
func TestWorkTakesTime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, thread := cputime.Process(), cputime.Thread()
	for cputime.Process() == process || cputime.Thread() == thread {
	}
	if cputime.Process() < process || cputime.Thread() < thread {
		t.Error("CPU time ran backwards")
	}
}

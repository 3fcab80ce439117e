package cputime_test

import (
	"testing"

	"github.com/dsload/dsload/internal/cputime"
)

// Work moves the clock forwards.
func TestWorkTakesTime(t *testing.T) {
	before := cputime.Process()
	for cputime.Process() == before {
	}
	if cputime.Process() < before {
		t.Error("CPU time ran backwards")
	}
}

package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestPlanTakesBuildFlags compares the flags of both commands: a plan takes every flag on which the
// rows of a build depend, and build refuses beside --plan those that the plan has.
func TestPlanTakesBuildFlags(t *testing.T) {
	plan := newPlanCommand().Flags()
	ofBuildAlone := []string{"plan", "partition", "out", "overwrite", "http", "notify", "append",
		"cached", "announce"}
	newBuildCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if plan.Lookup(f.Name) == nil && !slices.Contains(ofBuildAlone, f.Name) {
			t.Errorf("plan has no flag --%s", f.Name)
		}
	})
}

package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestPlanTakesBuildFlags compares the flags of both commands: plan takes every flag that can
// change the rows of a build, and build refuses those with --plan.
func TestPlanTakesBuildFlags(t *testing.T) {
	plan := newPlanCommand().Flags()
	ofBuildAlone := []string{"plan", "partition", "out", "overwrite", "http", "notify", "append",
		"cached", "announce", "cpu-profile", "preview"}
	newBuildCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if plan.Lookup(f.Name) == nil && !slices.Contains(ofBuildAlone, f.Name) {
			t.Errorf("plan has no flag --%s", f.Name)
		}
	})
}

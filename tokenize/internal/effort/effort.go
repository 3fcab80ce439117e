// Package effort decides how much tests try, as the package of that name in the repository's root
// does, which belongs to another module: importers of tokenize would load that whole module for it.
package effort

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

// Of returns one of three values: for go test -short, for go test, and for make soak.
func Of[T any](short, full, soak T) T {
	switch {
	case os.Getenv("DSLOAD_SOAK") != "":
		return soak
	case testing.Short():
		return short
	}
	return full
}

// Economize makes the many small tests of a package cost less; its TestMain calls it. They spend up to a quarter of their
// time on collections.
func Economize() { debug.SetGCPercent(400) }

// Raced reports whether the race detector is on. sync.Pool then drops items at random, so that
// allocations cannot be counted.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// OneGoroutine skips a test that starts no goroutine where make test runs the quick tests once more
// under the race detector.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Raced() && testing.Short() {
		t.Skip("it starts no goroutine: runs without -race, or without -short")
	}
}

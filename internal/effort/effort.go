// Package effort decides how much tests try: go test -short is the quick set, go test is the whole,
// and DSLOAD_SOAK=1, as make soak sets it, is what takes hours. Only tests import it.
package effort

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

// Soak reports whether the tests may take hours.
func Soak() bool { return os.Getenv("DSLOAD_SOAK") != "" }

// Of returns one of three values: for go test -short, for go test, and for make soak.
func Of[T any](short, full, soak T) T {
	switch {
	case Soak():
		return soak
	case testing.Short():
		return short
	}
	return full
}

// Economize makes the many small tests of a package cost less; its TestMain calls it first. Quick tests spend a quarter
// of their time on collections and on waking threads for each other. Races are looked for with all processors.
func Economize() {
	flag.Parse()
	debug.SetGCPercent(400)
	if testing.Short() && !Raced {
		runtime.GOMAXPROCS(1)
	}
}

// Count returns the number in an environment variable, or what Of returns if it is not set.
func Count(t testing.TB, name string, short, full, soak int) int {
	t.Helper()
	n := Of(short, full, soak)
	if s := os.Getenv(name); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return n
}

// OneGoroutine skips a test that starts no goroutine of ours where make test runs the quick tests
// once more under the race detector, which would find nothing in it. make soak runs it there too.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if Raced && testing.Short() {
		t.Skip("it starts no goroutine: runs without -race, or without -short")
	}
}

// RacedElsewhere skips an expensive test whose goroutines cheaper tests of its package start in the
// same ways, where OneGoroutine skips.
func RacedElsewhere(t testing.TB) {
	t.Helper()
	if Raced && testing.Short() {
		t.Skip("other tests start the same goroutines: runs without -race, or without -short")
	}
}

// Random returns random values by a seed that the test logs: DSLOAD_SEED, or the time in make soak,
// or always the same one.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := Count(t, "DSLOAD_SEED", 1, 1, int(time.Now().UnixNano()))
	t.Logf("the same random values again: DSLOAD_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// Await waits for what another process or goroutine brings about. It gives up shortly before go
// test's own time limit: a slow machine is not a failure.
func Await(t *testing.T, what func() bool, otherwise string) {
	t.Helper()
	for end, limited := t.Deadline(); !what(); time.Sleep(5 * time.Millisecond) {
		if limited && time.Until(end) < 10*time.Second {
			t.Fatal(otherwise)
		}
	}
}

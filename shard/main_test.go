package shard_test

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsload/dsload/internal/effort"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	// Quick tests spend a quarter of their time on collections and on waking threads for each other; races are
	// looked for with all processors.
	flag.Parse()
	debug.SetGCPercent(400)
	if testing.Short() && !effort.Raced {
		runtime.GOMAXPROCS(1)
	}
	goleak.VerifyTestMain(m)
}

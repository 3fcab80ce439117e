package ingest

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

func TestMain(m *testing.M) {
	// Quick tests spend a quarter of their time on collections and on waking threads for each other; races are
	// looked for with all processors.
	flag.Parse()
	debug.SetGCPercent(400)
	if testing.Short() && !effort.Raced {
		runtime.GOMAXPROCS(1)
	}
	os.Exit(m.Run())
}

package source

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote"
)

// Servers that fail are asked again at once: the pauses are tested where they are made.
func TestMain(m *testing.M) {
	remote.FirstPause = time.Millisecond
	// Quick tests spend a quarter of their time on collections and on waking threads for each other; races are
	// looked for with all processors.
	flag.Parse()
	debug.SetGCPercent(400)
	if testing.Short() && !effort.Raced {
		runtime.GOMAXPROCS(1)
	}
	os.Exit(m.Run())
}

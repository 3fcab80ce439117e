package source

import (
	"os"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/remote"
)

// Servers that fail are asked again at once: the pauses are tested where they are made.
func TestMain(m *testing.M) {
	remote.FirstPause = time.Millisecond
	effort.Economize()
	os.Exit(m.Run())
}

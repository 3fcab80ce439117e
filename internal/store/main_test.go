package store

import (
	"os"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/remote"
)

// Servers that fail are asked again at once: the pauses are tested where they are made.
func TestMain(m *testing.M) {
	remote.FirstPause = time.Millisecond
	os.Exit(m.Run())
}

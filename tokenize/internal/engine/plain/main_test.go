package plain

import (
	"os"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
)

func TestMain(m *testing.M) {
	effort.Economize()
	os.Exit(m.Run())
}

package export

import (
	"os"
	"testing"

	"github.com/dsload/dsload/internal/effort"
)

func TestMain(m *testing.M) {
	effort.Economize()
	os.Exit(m.Run())
}

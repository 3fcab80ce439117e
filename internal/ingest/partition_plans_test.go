package ingest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/merge"
	"github.com/dsload/dsload/internal/remote/remotetest"
)

// A folder of a bucket is that of one plan: a part of another plan that is built there at any write of the first
// one's is refused, or the first one is, and the parts of the other can be merged.
func TestPartsOfTwoPlans(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, remoteTexts()["a.txt"], 0o600); err != nil {
		t.Fatal(err)
	}
	o := remoteOptions(path)
	first := planned(t, o, 1)
	o.MaxLength = 47
	second := planned(t, o, 1)
	remotetest.EachMemoryBucket(t, func(t *testing.T, srv *remotetest.Server, uri string) {
		if testing.Short() && !strings.HasPrefix(uri, "s3") {
			t.Skip("one kind of bucket is enough for quick tests")
		}
		for at := 0; ; at++ {
			out := uri + "/" + strings.Repeat("x", at+1)
			on := func(machine string) {
				os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, uri[:2], out[len(uri):], machine))
			}
			t.Setenv("XDG_CACHE_HOME", "")
			n, secondErr := 0, error(nil)
			srv.OnWrite = func(string, string) (f remotetest.WriteFault) {
				if n++; n == at+1 {
					on("b")
					_, secondErr = buildPart(second, 0, out)
				}
				return f
			}
			on("a")
			_, firstErr := buildPart(first, 0, out)
			srv.OnWrite = nil
			if n <= at {
				return
			}
			var other *dataset.SettingsError
			if (firstErr == nil) == (secondErr == nil) || firstErr != nil && !errors.As(firstErr, &other) ||
				secondErr != nil && !errors.As(secondErr, &other) {
				t.Fatalf("at write %d: %v; %v", at, firstErr, secondErr)
			}
			if _, err := merge.Run(t.Context(), merge.Options{Dir: out}); err != nil {
				t.Fatalf("at write %d: %v; %v; merge: %v", at, firstErr, secondErr, err)
			}
		}
	})
}

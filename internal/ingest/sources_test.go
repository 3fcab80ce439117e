package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// A build from more files than are listed one by one names the folder in its manifest, with a
// checksum over all of them, and what was skipped.
func TestBuildFromVeryManyFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it writes thousands of files")
	}
	dir := t.TempDir()
	write := func(name, data string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const files = 1100
	for i := range files {
		write(fmt.Sprintf("%05d.txt", i), fmt.Sprintf("text %d\n", i))
	}
	write("99998.txt", "") // read to its end too
	write("99999.png", "\x89PNG\r\n\x1a\n")
	out := filepath.Join(t.TempDir(), "new", "data")
	s, err := Run(context.Background(), option.Options{Settings: option.Settings{Sources: []string{dir}},
		Out:       out,
		Resources: option.Resources{LoadedTokenizer: small()}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(fault.All(s.Notes, nil), func(n string) bool {
		return strings.Contains(n,
			"skipped 1 image (99999.png)")
	}) {
		t.Errorf("notes: %q", s.Notes)
	}
	m, err := shard.ReadManifest(shardfile.OS(), out)
	if err != nil {
		t.Fatal(err)
	}
	if m.Counters["documents"] != files || len(m.Sources) != 1 {
		t.Fatalf("%d documents of %+v", m.Counters["documents"], m.Sources)
	}
	if in := m.Sources[0]; in.URI != dir || in.Files != files+1 || in.Bytes == 0 ||
		!strings.HasPrefix(in.Checksum, "sha256:") || len(in.Checksum) != 7+64 {
		t.Errorf("%+v", in)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(out)), ".dsload-list*")); len(left) > 0 {
		t.Errorf("%s is left", left)
	}
}

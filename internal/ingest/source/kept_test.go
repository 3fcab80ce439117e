package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/google/go-cmp/cmp"
)

// Small files are read once: what was written over one behind its time stamp is not seen. A file that is larger than
// what detection reads, and those for which there is no room, are read where their turn comes.
func TestSmallFilesAreReadOnce(t *testing.T) {
	const large = sniffBytes + 10
	dir := t.TempDir()
	old, changed := strings.Repeat("a", 100), strings.Repeat("b", 100)
	write(t, dir, "1.txt", old)
	write(t, dir, "2.gz", gzipped(old))
	write(t, dir, "3.txt", strings.Repeat("a", large))
	write(t, dir, "4.txt", old)
	write(t, dir, "5.txt", old)
	o := Options{Args: []string{dir}, Format: Document, KeepBytes: 200}
	before := readAll(t, Options{Args: []string{dir}, Format: Document})
	for _, forget := range []bool{false, true} {
		set := openSet(t, o)
		if kept := set.KeptBytes(); kept != 200 {
			t.Errorf("%d bytes are kept", kept)
		}
		if forget {
			set.Forget()
		}
		got, err := readFrom(t, set, Position{})
		if err != nil || !cmp.Equal(before, got, cmp.AllowUnexported(piece{})) {
			t.Errorf("forgotten %v: %v, %s", forget, err, cmp.Diff(before, got, cmp.AllowUnexported(piece{})))
		}
	}
	set := openSet(t, o)
	for _, name := range []string{"1.txt", "4.txt", "5.txt"} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, changed)
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{old, old, strings.Repeat("a", large), old, changed}
	for round := range 2 {
		records, err := readFrom(t, set, Position{})
		if diff := cmp.Diff(want, dataOf(records)); err != nil || diff != "" {
			t.Errorf("round %d: %v, %s", round, err, diff)
		}
		want[0], want[3] = changed, changed // what was read is kept no longer
	}
}

func TestKeptFilesMustBeThere(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "1.txt", "text\n")
	o := Options{Args: []string{dir}, KeepBytes: 1 << 20}
	for what, change := range map[string]func() error{
		"existence": func() error { return os.Remove(path) },
		"size":      func() error { return os.WriteFile(path, []byte("other text\n"), 0o600) },
	} {
		write(t, dir, "1.txt", "text\n")
		set := openSet(t, o)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		var differs *cause.ChangedError
		if _, err := readFrom(t, set, Position{}); !errors.As(err, &differs) || differs.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}

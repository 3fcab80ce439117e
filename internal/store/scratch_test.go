package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/private"
	"github.com/dsload/dsload/internal/shardfile"
)

// Where others may write into a scratch folder, or exchange it, nothing is built.
func TestScratchOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders have no modes")
	}
	for name, c := range map[string]struct {
		dir  string // below the folder for caches
		mode os.FileMode
		ok   bool
	}{
		"mine":                 {"", 0o755, true},
		"for temporary files":  {"", 0o777 | os.ModeSticky, true},
		"open":                 {"", 0o777, false},
		"dsload's is open":     {"dsload", 0o777, false},
		"dsload's is sticky":   {"dsload", 0o777 | os.ModeSticky, false},
		"scratch's is a group": {"dsload/out", 0o770, false},
	} {
		base := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", base)
		dir := filepath.Join(base, c.dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		for _, target := range []Target{{URI: "s3://bucket/x"}, {URI: "s3://bucket/x", Part: shardfile.Part{Number: 1, Of: 2}}} {
			s, err := openScratch(&target)
			var access *private.AccessError
			switch {
			case err == nil && !c.ok:
				t.Errorf("%s: used", name)
			case err != nil && (c.ok || !errors.As(err, &access) || access.Dir != dir || fault.KindOf(err) != fault.Usage ||
				!strings.Contains(err.Error(), "XDG_CACHE_HOME")):
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				if err := s.close(true); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Links that lie where a scratch folder has its files are never written through.
func TestScratchLinks(t *testing.T) {
	eachWriting(t, func(t *testing.T, w *writing) {
		local := filepath.Join(w.dir, "local")
		w.must(w.write(unsynced{shardfile.OS()}, local, rows, nil))
		if err := w.build("a", 340, nil); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		out := filepath.Join(w.dir, "a", "dsload", "out")
		var names []string
		w.must(filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(out, path)
				names = append(names, name)
			}
			return err
		}))
		if len(names) < 3 {
			t.Fatal(names)
		}
		names = append(names, filepath.Dir(names[0])+".lock")
		for _, link := range []func(old, name string) error{os.Symlink, os.Link} {
			for _, name := range names {
				w.empty()
				w.dir = t.TempDir()
				victim := filepath.Join(w.dir, "victim")
				at := filepath.Join(w.dir, "b", "dsload", "out", name)
				w.must(errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.MkdirAll(filepath.Dir(at), 0o700),
					link(victim, at)))
				if err := w.finish("b"); err == nil {
					w.compare(local)
				}
				if data, err := os.ReadFile(victim); string(data) != "precious" {
					t.Errorf("%s: %q, %v", name, data, err)
				}
			}
		}
	})
}

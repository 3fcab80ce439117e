package textcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/private"
	"github.com/dsload/dsload/internal/shardfile"
)

func key(name string) Key {
	return Key{Name: name, Settings: "5e771465" + name, Content: "c047e47" + name}
}

// finish makes the entry a dataset of some bytes.
func finish(t *testing.T, e *Entry, bytes int) {
	t.Helper()
	if err := os.MkdirAll(e.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Dir, shardfile.ManifestName), make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, c *Cache, k Key) *Entry {
	t.Helper()
	e, err := c.Acquire(context.Background(), k, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOneOfManyBuilds(t *testing.T) {
	c := &Cache{Dir: filepath.Join(t.TempDir(), "cache"), Limit: 1 << 30}
	var all sync.WaitGroup
	var mu sync.Mutex
	builders := 0
	for range 8 {
		all.Go(func() {
			e, err := c.Acquire(context.Background(), key("a"), func(pid int) {
				if pid != os.Getpid() && pid != 0 {
					t.Errorf("waiting for process %d", pid)
				}
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer e.Close()
			if !e.Ready {
				mu.Lock()
				builders++
				mu.Unlock()
				finish(t, e, 10)
			}
		})
	}
	all.Wait()
	if builders != 1 {
		t.Errorf("%d of 8 built it", builders)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	builder := acquire(t, c, key("a"))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := c.Acquire(ctx, key("a"), func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled: %v", err)
	}
	if err := builder.Close(); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, c, key("a")) // the builder went without being done
	if next.Ready {
		t.Error("ready without a manifest")
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestChangedSourcesAreTold(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	e := acquire(t, c, key("a"))
	if e.Changed {
		t.Error("the first is said to have changed")
	}
	finish(t, e, 1)
	_ = e.Close()
	other := key("a")
	other.Content = "0" + other.Content
	e = acquire(t, c, other)
	defer e.Close()
	if e.Ready || !e.Changed {
		t.Errorf("of changed sources: %+v", e)
	}
}

func TestEvictTakesTheOldestThatNobodyHolds(t *testing.T) {
	c := &Cache{Dir: t.TempDir(), Limit: 250}
	held := map[string]*Entry{}
	for i, name := range []string{"oldest", "held", "old", "kept", "recent"} {
		e := acquire(t, c, key(name))
		finish(t, e, 100)
		used := time.Now().Add(time.Duration(i-10) * time.Hour)
		if name == "recent" {
			used = time.Now()
		}
		if err := os.Chtimes(e.Dir+lockSuffix, used, used); err != nil {
			t.Fatal(err)
		}
		held[name] = e
		if name != "held" {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(c.Dir, "half-removed"+goneSuffix), 0o700); err != nil {
		t.Fatal(err)
	}
	gone, err := c.Evict(held["kept"].Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range gone {
		names = append(names, e.Dir)
	}
	if want := []string{held["oldest"].Dir, held["old"].Dir}; !slices.Equal(names, want) {
		t.Errorf("evicted %v, want %v", names, want)
	}
	left, err := os.ReadDir(c.Dir)
	if err != nil || len(left) != 6 {
		t.Errorf("left are %v, %v: want three folders and their locks", left, err)
	}
	again := acquire(t, c, key("old"))
	defer again.Close()
	if again.Ready || again.Changed {
		t.Errorf("evicted and still there: %+v", again)
	}
	_ = held["held"].Close()
}

func TestHold(t *testing.T) {
	c := &Cache{Dir: t.TempDir()}
	if e, err := Hold(t.TempDir()); e != nil || err != nil {
		t.Errorf("of a folder that is not an entry: %v, %v", e, err)
	}
	built := acquire(t, c, key("a"))
	finish(t, built, 100)
	_ = built.Close()
	e, err := Hold(built.Dir + "/")
	if err != nil || e == nil {
		t.Fatal(e, err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(built.Dir+lockSuffix, past, past); err != nil {
		t.Fatal(err)
	}
	if gone, err := c.Evict(""); len(gone) != 0 || err != nil {
		t.Errorf("evicted %v, %v while it is held", gone, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if gone, err := c.Evict(""); len(gone) != 1 || err != nil {
		t.Errorf("evicted %v, %v after it was released", gone, err)
	}
}

func TestNamesAreFileNames(t *testing.T) {
	for _, name := range []string{"../../etc", "a b/c", "", "…", "hf://datasets/x/y", fmt.Sprint(make([]byte, 900))} {
		k := Key{Name: name, Settings: "s", Content: "c"}
		if f := k.folder(); f != filepath.Base(f) || f[0] == '.' || len(f) > 100 {
			t.Errorf("%q becomes %q", name, f)
		}
	}
}

func TestDamagedEntriesAreBuiltAgain(t *testing.T) {
	damage := errors.New("damaged")
	c := &Cache{Dir: filepath.Join(t.TempDir(), "cache"), Limit: 1 << 30}
	e := acquire(t, c, key("a"))
	finish(t, e, 10)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	c.Damage = func(_ string, ready bool) error {
		if ready {
			return damage
		}
		return nil
	}
	held, err := Hold(e.Dir)
	if held == nil || err != nil {
		t.Fatal(err)
	}
	if _, err := c.Acquire(context.Background(), key("a"), func(int) {}); !errors.Is(err, damage) {
		t.Errorf("damaged and in use: %v", err)
	}
	held.Close()
	e = acquire(t, c, key("a"))
	defer e.Close()
	if _, err := os.Stat(e.Dir); e.Ready || e.Changed || !errors.Is(e.Damage, damage) || !os.IsNotExist(err) {
		t.Errorf("%+v, folder: %v", e, err)
	}
}

// What others may have planted is neither served nor built on, and only what is a cache's own is removed.
func TestOthersCannotPlant(t *testing.T) {
	c := &Cache{Dir: filepath.Join(t.TempDir(), "cache"), Limit: 1 << 30}
	e := acquire(t, c, key("a"))
	finish(t, e, 10)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777 | os.ModeSticky} {
		if err := os.Chmod(c.Dir, mode); err != nil {
			t.Fatal(err)
		}
		var access *private.AccessError
		if _, err := c.Acquire(context.Background(), key("a"), func(int) {}); !errors.As(err, &access) ||
			access.Dir != c.Dir || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("a cache of mode %v: %v", mode, err)
		}
	}
	if err := os.Chmod(c.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	if err := os.Rename(e.Dir, filepath.Join(elsewhere, "planted")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "planted"), e.Dir); err != nil {
		t.Fatal(err)
	}
	e = acquire(t, c, key("a"))
	defer e.Close()
	if e.Ready || e.Damage == nil || !isReady(filepath.Join(elsewhere, "planted")) {
		t.Errorf("a link in the place of an entry: %+v", e)
	}
}

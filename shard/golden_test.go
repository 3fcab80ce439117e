package shard_test

import (
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// golden is the BLAKE3 over names and contents of the folder that a corpus makes in format version
// 1. When one of these changes, so must shard.FormatVersion and FORMAT.md.
var golden = map[string]string{
	"all":    "bad855c69e406e456d16a53c44eaccbb0153c198975f6649fb5c9e22ab7d6583",
	"chat":   "8fc93db0197f4f4a645b0d17c95411cbb370b2c7321acb14a9e2ec6f56b03b25",
	"packed": "ff60fb351e8a5e62ce40fc99dc982fc4438db612ea3a2f97568b4f2638f35ae0",
	"plain":  "a8a4e6b24e75c0c07fbf67b6712127141efc5f0abc79f6e4d966a8bfa4f06b3e",
	"wide":   "5d8f191b05b8d5b3940f924febf4546e1202a791621665a5b2b236a8934e1335",
}

func TestGolden(t *testing.T) {
	if shard.FormatVersion != 1 {
		t.Fatal("the golden sums are of version 1")
	}
	for name, c := range corpora {
		files := c.build(t).Files()
		if got := digest(files); got != golden[name] {
			t.Errorf("%s: %s, want %s", name, got, golden[name])
		}
	}
	// An unfinished build too: a later dsload has to resume it or say that it cannot.
	c := allCols
	c.stop = true
	fsys := shardtest.New()
	if err := c.run(fsys, "/d", every(70)); err != nil {
		t.Fatal(err)
	}
	if got, want := digest(fsys.Files()), goldenCheckpoint; got != want {
		t.Errorf("checkpoint: %s, want %s", got, want)
	}
}

const goldenCheckpoint = "c3382b3a41c843dd0b2f00093eedb090b2fd5f41ce18e39528e297329e046e1f"

func digest(files map[string][]byte) string {
	h := blake3.New()
	for _, n := range slices.Sorted(maps.Keys(files)) {
		sum := blake3.Sum256(files[n])
		h.Write([]byte(n))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The real file system makes the same bytes as the one in memory, and leaves nothing else behind.
func TestRealFileSystem(t *testing.T) {
	c := allCols
	dir := filepath.Join(t.TempDir(), "a", "d")
	part := c
	part.n, part.stop = 150, true
	if err := part.run(shardfile.OS(), dir, every(40)); err != nil {
		t.Fatal(err)
	}
	if err := c.run(shardfile.OS(), dir, every(40)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for _, e := range entries {
		if got["/d/"+e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	mustEqual(t, "real", got, c.build(t).Files())
	if damage, err := shard.Verify(ctx, shardfile.OS(), dir, nil); err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
}

// Two builds cannot have one folder; the second one's error says who has it, and a released lock is
// no hindrance.
func TestLock(t *testing.T) {
	for name, fsys := range map[string]shardfile.FS{"memory": shardtest.New(), "real": shardfile.OS()} {
		dir := filepath.Join(t.TempDir(), "d")
		if name == "memory" {
			dir = "/d"
		}
		for range 2 {
			b, _, err := dataset.OpenBuilder(fsys, dir, plain.options())
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = dataset.OpenBuilder(fsys, dir, plain.options())
			var le *shardfile.LockedError
			host, _ := os.Hostname()
			if !errors.As(err, &le) || le.PID != os.Getpid() || le.Host != host || time.Since(le.Start) > time.Hour ||
				!strings.Contains(err.Error(), dir) {
				t.Fatalf("%s: %v", name, err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := b.Row("train", &dataset.Example{InputIDs: []uint32{1}}); !errors.Is(err, shard.ErrClosed) {
				t.Error(err)
			}
		}
	}
	// What a killed process left of its lock holds nobody up.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "build.lock"), []byte(`{"pid":1}`), 0o666); err != nil {
		t.Fatal(err)
	}
	b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, plain.options())
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
}

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

	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/shard/shardtest"
)

// golden is the BLAKE3 over names and contents of the folder that a corpus makes in format version
// 2. When one of these changes, so must shard.FormatVersion and FORMAT.md.
var golden = map[string]string{
	"all":    "fd1c2ed1c81af8f3c12c478b0b25432ae7b3c8d6bebea0762e7b8be96df7fe42",
	"chat":   "bfe8428c5bb11c2c6ad3a3c70f911477fed4714967cba2d5b3b67ce425f4ef70",
	"packed": "30e0992447d75a909d0ae0e3f52bb42597216adc3114370a8a9be9ed62eeef0b",
	"plain":  "722a8ebcb26b732e8ed5ac7cc16a6cd7f7560062428ef2a567cf8b621f258b7f",
	"wide":   "0fb768408f8becbe98a979e651f15d907d4e9b495eb28d1ae7f1d36966a9ce35",
}

func TestGolden(t *testing.T) {
	if shard.FormatVersion != 2 {
		t.Fatal("the golden sums are of version 2")
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

const goldenCheckpoint = "b51655fb15e0ce4340b6a1c6d6bae9a29e95e15eb6fbf93e089139d1a506df7b"

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
	if err := part.run(shard.OS(), dir, every(40)); err != nil {
		t.Fatal(err)
	}
	if err := c.run(shard.OS(), dir, every(40)); err != nil {
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
	if damage, err := shard.Verify(ctx, shard.OS(), dir, nil); err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
}

// Two builds cannot have one folder; the second is told who has it, and a lock that was let go is
// no hindrance.
func TestLock(t *testing.T) {
	for name, fsys := range map[string]shard.FS{"memory": shardtest.New(), "real": shard.OS()} {
		dir := filepath.Join(t.TempDir(), "d")
		if name == "memory" {
			dir = "/d"
		}
		for range 2 {
			b, _, err := shard.OpenBuilder(fsys, dir, plain.options())
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = shard.OpenBuilder(fsys, dir, plain.options())
			var le *shard.LockedError
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
			if err := b.Append("train", &shard.Example{InputIDs: []uint32{1}}); !errors.Is(err, shard.ErrClosed) {
				t.Error(err)
			}
		}
	}
	// What a killed process left of its lock holds nobody up.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "build.lock"), []byte(`{"pid":1}`), 0o666); err != nil {
		t.Fatal(err)
	}
	b, _, err := shard.OpenBuilder(shard.OS(), dir, plain.options())
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
}

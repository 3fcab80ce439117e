//go:build unix

package shard_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// Nothing is written through a link that somebody put into the folder, whether it leads to a file
// or not, whenever it came there.
func TestPlantedLinks(t *testing.T) {
	names := []string{"build.lock", "build.checkpoint", "build.checkpoint.tmp", "manifest.json", "manifest.json.tmp",
		"run.json", "run.json.tmp",
		"train-00000.arrow", "train-00000.arrow.tmp", "val-00000.arrow.tmp", "rejects.jsonl", "rejects.jsonl.tmp",
		"tokenizer.json.tmp"}
	c := few(plain)
	for _, name := range names {
		for _, dangling := range []bool{false, true} {
			for _, when := range []string{"before", "during", "resumed"} {
				t.Run(strings.Join([]string{name, when, map[bool]string{true: "dangling"}[dangling]}, " "),
					func(t *testing.T) {
						base := t.TempDir()
						dir, victim := filepath.Join(base, "d"), filepath.Join(base, "victim")
						if err := os.Mkdir(dir, 0o777); err != nil {
							t.Fatal(err)
						}
						plant := func() {
							if !dangling {
								if err := os.WriteFile(victim, []byte("mine"), 0o666); err != nil {
									t.Fatal(err)
								}
							}
							path := filepath.Join(dir, name)
							if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
								t.Fatal(err)
							}
							if err := os.Symlink(victim, path); err != nil {
								t.Fatal(err)
							}
						}
						part := c
						part.n, part.stop = 60, true
						switch when {
						case "before":
							plant()
						case "resumed":
							if err := part.run(shardfile.OS(), dir, every(30)); err != nil {
								t.Fatal(err)
							}
							plant()
						}
						at := func(i int) bool {
							if i == 50 && when == "during" {
								plant()
							}
							return i%30 == 29
						}
						err := c.run(shardfile.OS(), dir, at) // it may succeed or not
						data, verr := os.ReadFile(victim)
						if dangling && !errors.Is(verr, os.ErrNotExist) || !dangling && string(data) != "mine" {
							t.Errorf("written through the link: %q %v; the build ended with %v", data, verr, err)
						}
						if err != nil && !strings.Contains(err.Error(), dir) {
							t.Errorf("the error names no file: %v", err)
						}
					})
			}
		}
	}
}

// What a lock file's other name has is not changed by taking the lock, whether a build wrote it or not.
func TestLockFileWithTwoNames(t *testing.T) {
	for content, want := range map[string]error{"mine": dataset.ErrForeign, `{"pid":7,"host":"h"}`: nil} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		err := errors.Join(os.WriteFile(victim, []byte(content), 0o666), os.Link(victim, filepath.Join(dir, "build.lock")))
		if err != nil {
			t.Skip(err)
		}
		b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, plain.options())
		if !errors.Is(err, want) {
			t.Fatal(err)
		}
		if err == nil {
			b.Close()
		}
		if data, err := os.ReadFile(victim); string(data) != content {
			t.Errorf("%q %v", data, err)
		}
	}
}

// A build whose lock file is gone or another's ends at its next checkpoint, and leaves the other's
// lock alone.
func TestLockLost(t *testing.T) {
	for name, fsys := range map[string]shardfile.FS{"memory": shardtest.New(), "real": shardfile.OS()} {
		for _, successor := range []bool{false, true} {
			dir := map[bool]string{false: "/d", true: "/e"}[successor]
			if name == "real" {
				dir = filepath.Join(t.TempDir(), "d")
			}
			b, _, err := dataset.OpenBuilder(fsys, dir, plain.options())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(b.Row("train", &dataset.Example{InputIDs: []uint32{1}}), b.Save(nil),
				fsys.Remove(filepath.Join(dir, "build.lock"))); err != nil {
				t.Fatal(err)
			}
			var other *dataset.Builder
			if successor {
				if other, _, err = dataset.OpenBuilder(fsys, dir, plain.options()); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Save(nil); !errors.Is(err, shardfile.ErrLockLost) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: %v", name, err)
			}
			if err := b.Row("train", &dataset.Example{InputIDs: []uint32{1}, Document: 1}); !errors.Is(err,
				shardfile.ErrLockLost) {
				t.Errorf("%s, append: %v", name, err)
			}
			if _, err := b.Finish(dataset.Provenance{}); !errors.Is(err, shardfile.ErrLockLost) {
				t.Errorf("%s, finish: %v", name, err)
			}
			if err := b.Close(); err != nil {
				t.Errorf("%s, close: %v", name, err)
			}
			if successor {
				if err := errors.Join(other.Save(nil), other.Close()); err != nil {
					t.Errorf("%s: the successor: %v", name, err)
				}
			}
		}
	}
}

// Pipes, sockets, devices and folders in the place of a file are refused at once, by readers and
// builders.
func TestNotRegularFiles(t *testing.T) {
	put := map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"folder": func(path string) error { return os.Mkdir(path, 0o777) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
	}
	for kind, put := range put {
		for _, name := range []string{"manifest.json", "train-00001.arrow", "run.json", "tokenizer.json",
			"build.lock", "build.checkpoint"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				base, err := os.MkdirTemp("", "d") // short enough for a socket's address
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(base) })
				dir := filepath.Join(base, "d")
				c := few(plain)
				if name == "build.checkpoint" {
					c.stop = true
				}
				if err := c.run(shardfile.OS(), dir, every(50)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, name)
				if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(name, "build") {
					damage, err := shard.Verify(ctx, shardfile.OS(), dir, nil)
					if err != nil || len(damage) != 1 || damage[0].File != name ||
						!errors.Is(damage[0].Err, shardfile.ErrNotRegular) {
						t.Errorf("verify: %v %v", damage, err)
					}
				}
				_, err = readEverything(dir, c)
				if reads := name == "manifest.json" || strings.HasPrefix(name, "train"); reads &&
					!errors.Is(err, shardfile.ErrNotRegular) {
					t.Errorf("read: %v", err)
				}
				err = c.run(shardfile.OS(), dir, never)
				if strings.HasPrefix(name, "build") && !errors.Is(err, shardfile.ErrNotRegular) {
					t.Errorf("build: %v", err)
				}
			})
		}
	}
}

package shard_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// bounded runs f and fails where it allocates more than its input's size accounts for: nothing may
// be allocated because a header merely says so.
func bounded(t *testing.T, input int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(4<<20+200*input) {
		t.Fatalf("%d bytes allocated for %d bytes of input", n, input)
	}
}

// dataError fails for an error that is not about data.
func dataError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, want := range []error{shard.ErrCorrupt, shard.ErrTruncated, shard.ErrTooLarge, shard.ErrVersion} {
		if errors.Is(err, want) {
			return
		}
	}
	t.Fatalf("unexpected error: %v", err)
}

func small(c corpus) corpus {
	c.n = 12
	return c
}

// FuzzManifest opens folders with any manifest, its seal put right where sealed is set.
func FuzzManifest(f *testing.F) {
	for _, c := range corpora {
		data := small(c).build(f).Files()["/d/manifest.json"]
		f.Add(data, false)
		f.Add(data[:len(data)-shardfile.SealBytes], true)
	}
	f.Add([]byte(`{"format": "dsload", "version": 2}`), false)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			data = shard.SealManifest(data)
		}
		fsys := shardtest.New()
		fsys.Put("/d/manifest.json", append([]byte{}, data...))
		bounded(t, len(data), func() {
			m, err := shard.ReadManifest(fsys, "/d")
			dataError(t, err)
			if err != nil {
				return
			}
			_, err = shard.Verify(ctx, fsys, "/d", nil)
			if err != nil {
				t.Fatal(err)
			}
			d, err := shard.OpenFS(fsys, "/d")
			dataError(t, err)
			if err != nil {
				return
			}
			d.Close()
			if len(m.Splits) > 0 {
				t.Fatal("a dataset without its shards")
			}
		})
	})
}

// FuzzShard reads a shard of any bytes, whose size and checksums the manifest confirms. kind
// chooses the schema.
func FuzzShard(f *testing.F) {
	var images []*shardtest.FS
	const name = "/d/train-00000.arrow"
	for _, k := range []string{"plain", "wide", "chat", "packed", "all"} {
		images = append(images, small(corpora[k]).build(f))
	}
	for i, image := range images {
		f.Add(byte(i), image.Files()[name])
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		fsys := images[int(kind)%len(images)].CrashImage(shardtest.LoseNone, 0)
		fsys.Put(name, append([]byte{}, data...))
		reseal(fsys)
		bounded(t, len(data), func() {
			damage, err := shard.Verify(ctx, fsys, "/d", nil)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := readAll(fsys)
			dataError(t, err)
			if len(damage) == 0 && (err != nil || rows == 0) {
				t.Fatalf("verified, but reading gives %d rows and %v", rows, err)
			}
			for _, d := range damage {
				dataError(t, d.Err)
			}
		})
	})
}

// reseal makes the manifest agree with the sizes and checksums of shards, as far as it can.
func reseal(fsys *shardtest.FS) {
	shard.Reseal(fsys, "/d", func(*shard.Manifest) {})
}

// FuzzCheckpoint resumes from a checkpoint of any bytes, its checksum put right.
func FuzzCheckpoint(f *testing.F) {
	kinds := []string{"plain", "wide", "chat", "packed", "all"}
	images := make([]*shardtest.FS, len(kinds))
	path := "/d/" + shardfile.CheckpointName(shardfile.Part{}, false)
	for i, k := range kinds {
		for _, n := range []int{5, 300} {
			c := corpora[k]
			c.n, c.stop = n, true
			images[i] = shardtest.New()
			if err := c.run(images[i], "/d", every(n-1)); err != nil {
				f.Fatal(err)
			}
			data := images[i].Files()[path]
			f.Add(byte(i), data[:len(data)-32], true)
			f.Add(byte(i), data, false)
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte, sealed bool) {
		k := int(kind) % len(images)
		if sealed {
			sum := blake3.Sum256(data)
			data = append(slices.Clip(data), sum[:]...)
		}
		fsys := images[k].CrashImage(shardtest.LoseNone, 0)
		fsys.Put(path, append([]byte{}, data...))
		bounded(t, len(data), func() {
			c := corpora[kinds[k]]
			b, _, err := dataset.OpenBuilder(fsys, "/d", c.options())
			if err != nil {
				if fsys.OpenFiles() != 0 {
					t.Fatal("files left open")
				}
				return
			}
			defer b.Close()
			// What was accepted can be built on without a panic, and what comes out is whole or
			// refused.
			for i := range 40 {
				_, e := c.row(i)
				e.Document += 1 << 40
				if err := b.Row("train", e); err != nil {
					return
				}
			}
			if err := b.Save(nil); err != nil {
				return
			}
			b.Finish(dataset.Provenance{})
		})
	})
}

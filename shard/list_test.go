//go:build unix

package shard_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zeebo/blake3"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// buildParts builds a corpus in parts of a folder.
func (c corpus) buildParts(t testing.TB, fsys shardfile.FS, dir string, parts int) {
	t.Helper()
	for p := range parts {
		o := c.options()
		o.Part, o.Plan = shardfile.Part{Number: p, Of: parts}, "plan"
		b, _, err := dataset.OpenBuilder(fsys, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := p * c.n / parts; i < (p+1)*c.n/parts; i++ {
			split, e := c.row(i)
			if err := b.Row(split, e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Finish(dataset.Provenance{State: json.RawMessage("{}")}); err != nil {
			t.Fatal(err)
		}
	}
}

// merger opens the merge of a folder of parts whose settings are settings.
func merger(t testing.TB, fsys shardfile.FS, dir string, parts, listed int, settings json.RawMessage) *dataset.Merger {
	t.Helper()
	m, err := dataset.OpenMerger(ctx, fsys, dir, dataset.MergeOptions{Partitions: parts, Plan: "plan", Settings: settings,
		MaxListed: listed, Quick: true, Workers: 2,
		PartSettings: func(int) (json.RawMessage, error) { return settings, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func merge(t testing.TB, fsys shardfile.FS, dir string, parts, listed int, settings json.RawMessage) {
	t.Helper()
	m := merger(t, fsys, dir, parts, listed, settings)
	if _, err := m.Finish(func([]string) (dataset.Provenance, error) { return dataset.Provenance{}, nil },
		nil); err != nil {
		t.Fatal(err)
	}
	if removed, err := m.Tidy(); err != nil || removed > 0 {
		t.Fatal(removed, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// listedTwice returns two merged folders of the same parts, the second with the lists of shards in
// files.
func listedTwice(t testing.TB) (plain, long *shardtest.FS) {
	c := corpora["all"]
	for _, listed := range []int{0, 3} {
		fsys := shardtest.New()
		c.buildParts(t, fsys, "/d", 3)
		merge(t, fsys, "/d", 3, listed, c.options().Settings)
		plain, long = long, fsys
	}
	return plain, long
}

// TestShardList compares a dataset whose shards are listed in a file with one whose manifest lists
// them.
func TestShardList(t *testing.T) {
	plain, long := listedTwice(t)
	want, have := openDataset(t, plain, shard.ReaderOptions{}),
		openDataset(t, long, shard.ReaderOptions{MaxOpenShards: 2})
	for i := range want.Manifest().Splits {
		name := want.Manifest().Splits[i].Name
		w, h := split(t, want, name), split(t, have, name)
		info := *h.Info()
		if info.NumShards() != len(w.Info().Shards) || info.ShardBytes() != w.Info().ShardBytes() {
			t.Errorf("%s: %d shards of %d bytes", name, info.NumShards(), info.ShardBytes())
		}
		info.List, info.Shards = nil, w.Info().Shards
		if diff := cmp.Diff(*w.Info(), info); diff != "" {
			t.Error(diff)
		}
		for j, sh := range w.Info().Shards {
			if got, err := h.Shard(j); err != nil || got != sh {
				t.Errorf("%s: shard %d: %+v %v, want %+v", name, j, got, err, sh)
			}
		}
		for row := range w.NumRows() {
			a, errA := w.ShardOf(row)
			b, errB := h.ShardOf(row)
			if a != b || errA != nil || errB != nil {
				t.Errorf("row %d: shard %d %v, want %d %v", row, b, errB, a, errA)
			}
		}
		if _, err := h.ShardOf(h.NumRows()); !errors.Is(err, shard.ErrRange) {
			t.Error(err)
		}
		var group sync.WaitGroup
		for first := range int64(3) {
			group.Go(func() {
				var a, b shard.Row
				for row := first; row < w.NumRows(); row += 3 {
					if err := errors.Join(w.ReadRow(row, &a), h.ReadRow(row, &b)); err != nil || !cmp.Equal(a, b) {
						t.Errorf("%s: row %d: %v %s", name, row, err, cmp.Diff(a, b))
					}
				}
			})
		}
		group.Wait()
	}
	if err := errors.Join(want.Close(), have.Close()); err != nil || long.OpenFiles() > 0 {
		t.Error(err, long.OpenFiles(), "open files")
	}
	if damage, err := shard.Verify(ctx, long, "/d", nil); err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
	m := merger(t, long, "/d", 3, 3, corpora["all"].options().Settings)
	if removed, err := m.Tidy(); err != nil || removed > 0 || m.Merged() == nil {
		t.Errorf("merged again: %d removed, %v", removed, err)
	}
	long.Put("/d/train-p00002-99999.arrow", []byte("stray"))
	if damage, err := shard.Verify(ctx, long, "/d", nil); err != nil || len(damage) != 1 ||
		damage[0].File != "train-p00002-99999.arrow" {
		t.Error(damage, err)
	}
	if removed, err := m.Tidy(); err != nil || removed != 1 {
		t.Error(removed, err)
	}
	if err := m.Close(); err != nil || long.OpenFiles() > 0 {
		t.Error(err, long.OpenFiles(), "open files")
	}
}

// TestListFixture reads a folder in testdata whose shards are listed in files; other readers read it too.
func TestListFixture(t *testing.T) {
	dir, c := filepath.Join("..", "testdata", "datasets", "listed"), fixtures["all"]
	fsys := shardtest.New()
	c.buildParts(t, fsys, "/d", 3)
	merge(t, fsys, "/d", 3, 3, c.options().Settings)
	sameAsFixture(t, fsys, dir)
	if damage, err := shard.Verify(ctx, shardfile.OS(), dir, nil); err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
	if rows, err := readEverything(dir, c); err != nil || rows != c.n {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestDamagedShardList changes the file of a list.
func TestDamagedShardList(t *testing.T) {
	_, fsys := listedTwice(t)
	path := "/d/" + shardfile.ListName("train")
	good := fsys.Files()[path]
	check := func(what string) {
		t.Helper()
		d, err := shard.OpenFS(fsys, "/d")
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: opened with %v", what, err)
		}
		damage, err := shard.Verify(ctx, fsys, "/d", nil)
		if err != nil || len(damage) != 1 || damage[0].File != filepath.Base(path) {
			t.Errorf("%s: verified with %v %v", what, damage, err)
		}
	}
	for i := range good {
		if i%5 == 0 || i < 16 {
			fsys.Flip(path, int64(i), 1<<(i%8))
			check(fmt.Sprintf("byte %d", i))
			fsys.Flip(path, int64(i), 1<<(i%8))
		}
	}
	fsys.Put(path, good[:len(good)-1])
	check("cut")
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("gone")
}

// TestForgedShardList has lists whose checksums are right and whose entries are not.
func TestForgedShardList(t *testing.T) {
	_, fsys := listedTwice(t)
	path := "/d/" + shardfile.ListName("train")
	good := fsys.Files()[path]
	number := func(data []byte, at int, value byte) { copy(data[at:], []byte{value, 0, 0, 0, 0, 0, 0, 0}) }
	cases := map[string]func(data []byte, m *shard.Manifest) []byte{
		"magic":             func(d []byte, _ *shard.Manifest) []byte { d[0] ^= 1; return d },
		"count in the head": func(d []byte, _ *shard.Manifest) []byte { d[8]++; return d },
		"no rows":           func(d []byte, _ *shard.Manifest) []byte { number(d, 16+64, 0); return d },
		"more rows":         func(d []byte, _ *shard.Manifest) []byte { d[len(d)-32]++; return d },
		"fewer tokens":      func(d []byte, _ *shard.Manifest) []byte { d[16+72]--; return d },
		"other bytes":       func(d []byte, _ *shard.Manifest) []byte { d[16+80]++; return d },
		"another part":      func(d []byte, _ *shard.Manifest) []byte { d[16+88] = 9; return d },
		"an entry twice":    func(d []byte, _ *shard.Manifest) []byte { copy(d[16+96+88:], d[16+88:16+96]); return d },
		"of another split": func(d []byte,
			m *shard.Manifest) []byte {
			m.Splits[0].List.File = shardfile.ListName("val")
			return d
		},
		"count":              func(d []byte, m *shard.Manifest) []byte { m.Splits[0].List.Shards++; return d },
		"a huge count":       func(d []byte, m *shard.Manifest) []byte { m.Splits[0].List.Shards = 1 << 60; return d },
		"size of all":        func(d []byte, m *shard.Manifest) []byte { m.Splits[0].List.Bytes++; return d },
		"not merged":         func(d []byte, m *shard.Manifest) []byte { m.Merged = nil; return d },
		"not among files":    func(d []byte, m *shard.Manifest) []byte { m.Files = m.Files[1:]; return d },
		"of a later version": func(d []byte, m *shard.Manifest) []byte { m.Version++; return d },
	}
	for name, forge := range cases {
		t.Run(name, func(t *testing.T) {
			manifest := fsys.Files()["/d/manifest.json"]
			defer func() {
				fsys.Put(path, good)
				fsys.Put("/d/manifest.json", manifest)
			}()
			m, err := shard.ReadManifest(fsys, "/d")
			if err != nil {
				t.Fatal(err)
			}
			data := forge(slices.Clone(good), m)
			for i := range m.Files {
				if m.Files[i].Name == filepath.Base(path) {
					sum := blake3.Sum256(data)
					m.Files[i].BLAKE3 = hex.EncodeToString(sum[:])
				}
			}
			encoded, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			fsys.Put(path, data)
			fsys.Put("/d/manifest.json", encoded)
			d, err := shard.OpenFS(fsys, "/d")
			if err == nil {
				d.Close()
			}
			if !errors.Is(err, shard.ErrCorrupt) && !errors.Is(err, shard.ErrVersion) {
				t.Error(err)
			}
		})
	}
}

// TestListsAreOurs replaces a dataset that has lists of shards by a build, which leaves none of them.
func TestListsAreOurs(t *testing.T) {
	_, fsys := listedTwice(t)
	c := corpora["plain"]
	o := c.options()
	o.Overwrite = true
	b, _, err := dataset.OpenBuilder(fsys, "/d", o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, name := range slices.Sorted(maps.Keys(fsys.Files())) {
		if strings.HasSuffix(name, ".bin") || strings.HasSuffix(name, ".arrow") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestVerifyFirst lists some of many damaged files, and counts all.
func TestVerifyFirst(t *testing.T) {
	_, long := listedTwice(t)
	for i := range 50 {
		long.Put(fmt.Sprintf("/d/train-p00002-%05d.arrow", 99_999-i), []byte("stray"))
	}
	all, err := shard.Verify(ctx, long, "/d", nil)
	if err != nil || len(all) != 50 {
		t.Fatalf("%d damaged: %v", len(all), err)
	}
	for _, limit := range []int{1, 7, 50, 51} {
		damage, n, err := shard.VerifyFirst(ctx, long, "/d", limit, nil)
		if err != nil || n != 50 || len(damage) != min(limit, 50) {
			t.Fatalf("limit %d: %d of %d listed: %v", limit, len(damage), n, err)
		}
		for i := range damage {
			if damage[i].File != all[i].File {
				t.Errorf("limit %d: %s is listed, want %s", limit, damage[i].File, all[i].File)
			}
		}
	}
	m := openDataset(t, long, shard.ReaderOptions{})
	sh, err := split(t, m, "train").Shard(0)
	if err != nil || m.Close() != nil {
		t.Fatal(err)
	}
	long.Flip("/d/"+sh.Name, 600, 1)
	damage, n, err := shard.VerifyFirst(ctx, long, "/d", 1, nil)
	if err != nil || n != 51 || len(damage) != 1 || damage[0].File != sh.Name {
		t.Errorf("a damaged shard: %d of %d: %v %v", len(damage), n, damage, err)
	}
}

// TestNothingIsAddedToALongList: the error of an addition gives advice that helps.
func TestNothingIsAddedToALongList(t *testing.T) {
	_, long := listedTwice(t)
	o := corpora["all"].options()
	o.Append, o.Settings = true, json.RawMessage(`{"additions": [1]}`)
	_, _, err := dataset.OpenBuilder(long, "/d", o)
	if !errors.Is(err, shard.ErrTooLarge) || !strings.Contains(err.Error(), "more than 100000 shards") {
		t.Errorf("%v", err)
	}
}

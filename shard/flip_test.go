package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

func sortedFiles(fsys *shardtest.FS) (names []string, files map[string][]byte) {
	files = fsys.Files()
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, files
}

// Any changed byte of any file of a dataset is found and its file named, and a reader returns an
// error or the right ids, but for values changed in place, which only a checksum can tell.
func TestFlips(t *testing.T) {
	effort.OneGoroutine(t)
	flips, share := 0, effort.Of(40, 300, 3000)
	for _, name := range []string{"plain", "all"} {
		c := corpora[name]
		c.n = 60
		fsys := c.build(t)
		names, files := sortedFiles(fsys)
		if damage, err := shard.Verify(ctx, fsys, "/d", nil); err != nil || len(damage) > 0 {
			t.Fatal(damage, err)
		}
		total := 0
		for _, data := range files {
			total += len(data)
		}
		seed := uint64(20)
		rnd := rand.New(rand.NewPCG(seed, 3))
		for _, n := range names {
			data := files[n]
			// Large files get more, by their size.
			for range max(share, 8*share*len(data)/total) {
				if len(data) == 0 {
					break
				}
				at, xor := rnd.Int64N(int64(len(data))), byte(1+rnd.IntN(255))
				fsys.Flip(n, at, xor)
				what := fmt.Sprintf("seed %d: %s, byte %d ^ %#x", seed, n, at, xor)
				damage, err := shard.Verify(ctx, fsys, "/d", nil)
				if errors.Is(err, shard.ErrVersion) && filepath.Base(n) == shardfile.ManifestName {
					err = nil // the version itself was hit
				} else if len(damage) != 1 || filepath.Base(n) != damage[0].File {
					t.Fatalf("%s: %v %v", what, damage, err)
				}
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if flips%8 == 0 {
					readAll(fsys) // it must not panic
				}
				fsys.Flip(n, at, xor)
				flips++
			}
		}
	}
	t.Logf("%d flips", flips)
	if flips < 16*share {
		t.Errorf("only %d flips", flips)
	}
}

// readAll reads what can be read.
func readAll(fsys shardfile.FS) (rows int, err error) {
	d, err := shard.OpenFS(fsys, "/d")
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for i := range d.Manifest().Splits {
		r, err := d.Split(d.Manifest().Splits[i].Name)
		if err != nil {
			return rows, err
		}
		var row shard.Row
		for j := range min(r.NumRows(), 5000) {
			if e := r.ReadRow(j, &row); e != nil {
				err = e
				continue
			}
			rows++
		}
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// Files that are gone, cut, longer or exchanged, and shards nobody listed.
func TestVerifyFiles(t *testing.T) {
	c := allCols
	c.n = 120
	fsys := c.build(t)
	names, files := sortedFiles(fsys)
	expect := func(what, name string) {
		t.Helper()
		damage, err := shard.Verify(ctx, fsys, "/d", nil)
		if name == "/d/"+shardfile.ManifestName && errors.Is(err, shard.ErrNotFound) {
			return
		}
		if err != nil || len(damage) != 1 || "/d/"+damage[0].File != name {
			t.Errorf("%s %s: %v %v", what, name, damage, err)
		}
	}
	for _, n := range names {
		if n != "/d/"+shardfile.RunName { // run.json is optional
			fsys.Put(n, nil)
			expect("missing", n)
		}
		if len(files[n]) > 0 {
			fsys.Put(n, files[n][:len(files[n])-1])
			expect("cut", n)
		}
		fsys.Put(n, append(slices.Clone(files[n]), '\n'))
		expect("longer", n)
		fsys.Put(n, files[n])
	}
	for _, n := range []string{"/d/train-00077.arrow", "/d/val-00000.arrow.tmp"} {
		fsys.Put(n, []byte("x"))
		expect("unlisted", n)
		fsys.Put(n, nil)
	}
	fsys.Put("/d/notes.txt", []byte("mine"))
	if damage, err := shard.Verify(ctx, fsys, "/d", nil); len(damage) > 0 || err != nil {
		t.Error(damage, err)
	}
	var last, total int64
	if _, err := shard.Verify(ctx, fsys, "/d", func(d, n int64) { last, total = d, n }); err != nil ||
		last != total || total == 0 {
		t.Errorf("progress ended at %d of %d, %v", last, total, err)
	}
}

// Damage that has the right checksums, as a writer with a bug would make it: the invariants catch
// it.
func TestVerifyInvariants(t *testing.T) {
	c := corpus{schema: shard.Schema{VocabSize: 300, LossMask: true}, n: 8, maxLen: 20}
	e0 := c.rows("train")[0]
	var ids []byte
	for _, id := range e0.InputIDs {
		ids = append(ids, byte(id), byte(id>>8))
	}
	cases := []struct {
		name string
		find []byte // the bytes to change and what to add to the byte at skip
		skip int
		add  byte
	}{
		{"id beyond the vocabulary", ids, 1, 2},
		{"offsets", []byte{0, 0, 0, 0, byte(len(e0.InputIDs)), 0, 0, 0}, 4, 1},
		{"document", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, 0, 9},
		{"batch metadata", []byte{0xff, 0xff, 0xff, 0xff}, 20, 1},
	}
	for _, tc := range cases {
		fsys := c.build(t)
		name := "/d/train-00000.arrow"
		data := slices.Clone(fsys.Files()[name])
		head := bytes.LastIndex(data[:1024], []byte{0xff, 0xff, 0xff, 0xff})
		at := head + bytes.Index(data[head:], tc.find)
		if tc.name != "batch metadata" {
			at = 1024 + bytes.Index(data[1024:], tc.find)
		}
		data[at+tc.skip] += tc.add
		fsys.Put(name, data)
		shard.Reseal(fsys, "/d", func(m *shard.Manifest) {})
		damage, err := shard.Verify(ctx, fsys, "/d", nil)
		if err != nil || len(damage) != 1 || damage[0].File != "train-00000.arrow" ||
			!errors.Is(damage[0].Err, shard.ErrCorrupt) {
			t.Errorf("%s: %v %v", tc.name, damage, err)
		}
		t.Logf("%s: %v", tc.name, damage)
	}
	manifests := map[string]func(m *shard.Manifest){
		"lengths": func(m *shard.Manifest) {
			h := m.Splits[0].Lengths
			h[0][0]++
			h[0][2] += h[0][1]
			h[1][2] -= h[0][1]
		},
		"labels": func(m *shard.Manifest) { m.Splits[0].LabelTokens++ },
		"longest": func(m *shard.Manifest) {
			m.Splits[0].MaxLength++
		},
	}
	for name, change := range manifests {
		fsys := c.build(t)
		shard.Reseal(fsys, "/d", change)
		damage, err := shard.Verify(ctx, fsys, "/d", nil)
		if err != nil || len(damage) != 1 || damage[0].File != shardfile.ManifestName {
			t.Errorf("%s: %v %v", name, damage, err)
		}
	}
	if diff := cmp.Diff(c.build(t).Files(), c.build(t).Files()); diff != "" {
		t.Error("two builds differ")
	}
}

// Every byte of a shard counts: with another one, and checksums that are right, rows are others or Verify complains.
func TestNoSpareBytes(t *testing.T) {
	effort.OneGoroutine(t)
	c := corpora["all"]
	c.n = 3
	fsys := c.build(t)
	names, files := sortedFiles(fsys)
	rows := func() (all []string) {
		d, err := shard.OpenFS(fsys, "/d")
		if err != nil {
			return nil
		}
		defer d.Close()
		for _, s := range d.Manifest().Splits {
			r, err := d.Split(s.Name)
			if err != nil {
				return nil
			}
			for row, err := range r.Rows(0, r.NumRows()) {
				if err != nil {
					return nil
				}
				all = append(all, fmt.Sprint(row))
			}
		}
		return all
	}
	want := rows()
	for _, name := range names {
		if !strings.HasSuffix(name, ".arrow") {
			continue
		}
		step := effort.Of(29, 1, 1)
		for at := len(name) % step; at < len(files[name]); at += step {
			fsys.Flip(name, int64(at), 0x80)
			shard.Reseal(fsys, "/d", func(*shard.Manifest) {})
			damage, err := shard.Verify(ctx, fsys, "/d", nil)
			if err == nil && len(damage) == 0 && slices.Equal(rows(), want) {
				t.Errorf("%s: byte %d does not count", name, at)
			}
			fsys.Put(name, slices.Clone(files[name]))
		}
	}
}

//go:build unix

package shard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// The folders in testdata/datasets are those that this package writes. They are read, by all ways of reading,
// and verified.
func TestFixtures(t *testing.T) {
	for name, c := range fixtures {
		dir := filepath.Join("..", "testdata", "datasets", name)
		sameAsFixture(t, c.build(t), dir)
		if damage, err := shard.Verify(ctx, shardfile.OS(), dir, nil); err != nil || len(damage) > 0 {
			t.Error(dir, damage, err)
		}
		if rows, err := readEverything(dir, c); err != nil || rows != c.n {
			t.Errorf("%s: %d rows, %v", dir, rows, err)
		}
	}
}

// One version of the format is read. A folder or an unfinished build of any other is refused with what to do.
func TestOtherVersions(t *testing.T) {
	refused := func(what string, err error, advice string) {
		t.Helper()
		if !errors.Is(err, shard.ErrVersion) || !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, version := range []int{-1, 0, 2, 3, 1000} {
		fsys, what := plain.build(t), fmt.Sprintf("version %d", version)
		shard.Reseal(fsys, "/d", func(m *shard.Manifest) { m.Version = version })
		_, err := shard.OpenFS(fsys, "/d")
		refused(what, err, "build the dataset again")
		_, err = shard.Verify(ctx, fsys, "/d", nil)
		refused(what, err, "build the dataset again")
	}
	c := plain
	c.stop = true
	fsys := shardtest.New()
	if err := c.run(fsys, "/d", every(70)); err != nil {
		t.Fatal(err)
	}
	path := "/d/" + shardfile.CheckpointName(shardfile.Part{}, false)
	data := fsys.Files()[path]
	data[len("DSLCKPT")]++
	sum := blake3.Sum256(data[:len(data)-32])
	fsys.Put(path, append(data[:len(data)-32], sum[:]...))
	_, _, err := dataset.OpenBuilder(fsys, "/d", c.options())
	refused("a checkpoint", err, "the version of dsload that began it can finish it")
}

// errWrong is what readEverything returns for rows that are not the corpus'.
var errWrong = errors.New("wrong rows")

// readEverything reads all rows of a folder that is or was the corpus', by rows and by spans. It
// stops at the first error.
func readEverything(dir string, c corpus) (n int, err error) {
	d, err := shard.ReaderOptions{MaxOffsetBytes: 1 << 20}.Open(shardfile.OS(), dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for _, s := range d.Manifest().Splits {
		r, err := d.Split(s.Name)
		if err != nil {
			return n, err
		}
		want := normals(c.rows(s.Name))
		var row shard.Row
		for i := range r.NumRows() {
			if err := r.ReadRow(i, &row); err != nil {
				return n, err
			}
			if i >= int64(len(want)) || differ(want[i], toExample(&row)) != "" {
				return n, fmt.Errorf("%w: row %d of %s", errWrong, i, s.Name)
			}
			n++
		}
		rows := make([]int64, r.NumRows())
		for i := range rows {
			rows[i] = int64(i)
		}
		got, err := readSpans(r, rows)
		if err != nil {
			return n, err
		}
		for i, e := range got {
			e.Document, e.Part = want[i].Document, want[i].Part // spans do not bring these
			if differ(want[i], normal(e)) != "" {
				return n, fmt.Errorf("%w: row %d of %s by its spans", errWrong, i, s.Name)
			}
		}
	}
	return n, nil
}

// forged is a case of testdata/datasets/forged.json, which the tests of the Python package run too: a change
// to a dataset folder.
type forged struct {
	Name string
	Base string // the folder in testdata/datasets
	File string // what is changed, manifest.json by default
	Do   string // replace (the default), truncate, append, flip, remove, copy, link, pipe, folder, text

	// replace: the first match of the regular expression becomes With, and where Keep is not set
	// the manifest gets a seal that is right.
	Find, With string
	Keep       bool // the seal as it was
	At         int  // truncate, flip: the byte, from the end where it is negative
	From       string
	Text       string
	Fine       bool // all rows come as they were
}

// apply makes the change in a copy of the folder.
func (f forged) apply(t *testing.T, dir string) {
	t.Helper()
	name := f.File
	if name == "" {
		name = shardfile.ManifestName
	}
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := f.At
	if at < 0 {
		at += len(data)
	}
	write := func(data []byte) error { return os.WriteFile(path, data, 0o666) }
	switch f.Do {
	case "", "replace":
		where := regexp.MustCompile(f.Find).FindIndex(data)
		if where == nil {
			t.Fatalf("%q is not in %s", f.Find, path)
		}
		changed := append(append(append([]byte{}, data[:where[0]]...), f.With...), data[where[1]:]...)
		if !f.Keep {
			changed = shard.SealManifest(changed[:len(changed)-shardfile.SealBytes])
		}
		err = write(changed)
	case "text":
		err = write([]byte(f.Text))
	case "truncate":
		err = write(data[:at])
	case "append":
		err = write(append(data, f.Text...))
	case "flip":
		data[at] ^= 1
		err = write(data)
	case "remove":
		err = os.Remove(path)
	case "copy":
		if data, err = os.ReadFile(filepath.Join(dir, f.From)); err == nil {
			err = write(data)
		}
	case "link":
		err = errors.Join(os.Rename(path, path+".real"), os.Symlink(name+".real", path))
	case "pipe":
		err = errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o666))
	case "folder":
		err = errors.Join(os.Remove(path), os.Mkdir(path, 0o777))
	default:
		t.Fatalf("%s: unknown change %q", f.Name, f.Do)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// No forged or damaged folder gives a row that is not the dataset's, and none is read to its end
// without an error. Verify names a file.
func TestForgedDatasets(t *testing.T) {
	data, err := os.ReadFile("../testdata/datasets/forged.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []forged
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	for i, f := range table {
		if testing.Short() && i%8 > 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "d")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "datasets", f.Base))); err != nil {
				t.Fatal(err)
			}
			f.apply(t, dir)
			c := fixtures[filepath.Base(f.Base)]
			rows, err := readEverything(dir, c)
			damage, verr := shard.Verify(ctx, shardfile.OS(), dir, nil)
			if f.Fine {
				if err != nil || rows != c.n || verr != nil || len(damage) > 0 {
					t.Errorf("%d rows, %v; verify: %v %v", rows, err, damage, verr)
				}
				return
			}
			if err == nil || errors.Is(err, errWrong) {
				t.Errorf("%d rows, %v", rows, err)
			}
			if verr == nil && len(damage) == 0 {
				t.Error("verify finds it intact")
			}
			t.Log(err)
			if strings.Contains(f.Name, "a vocabulary smaller than the ids") {
				d, err := shard.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				r := split(t, d, "train")
				rows := make([]int64, r.NumRows())
				for i := range rows {
					rows[i] = int64(i)
				}
				if _, err := readSpans(r, rows); !errors.Is(err, shard.ErrCorrupt) {
					t.Errorf("by spans: %v", err)
				}
			}
		})
	}
}

// No number about the rows in a manifest can be another one: rows, or its other numbers, contradict it.
func TestManifestNumbers(t *testing.T) {
	about, free := regexp.MustCompile(`^.(splits|files|schema)`), regexp.MustCompile(`vocab_size|documents|text_|sources.*rows`)
	c := corpora["all"]
	c.n = 20
	fsys := c.build(t)
	shard.Reseal(fsys, "/d", func(m *shard.Manifest) {
		for i := range m.Splits {
			s := &m.Splits[i]
			s.LossTokens = s.Tokens
			s.Sources = []shard.SourceCounts{{URI: "x", Rows: s.Examples, Tokens: s.Tokens, LossTokens: s.Tokens, TextBytes: 9}}
		}
		data, _ := json.Marshal(m)
		var tree any
		json.Unmarshal(data, &tree)
		eachNumber(tree, "", func(path string, set func(float64), old float64) {
			for _, v := range []float64{old + 1, old - 1, -1, 1 << 62} {
				set(v)
				changed, _ := json.Marshal(tree)
				var other shard.Manifest
				if !about.MatchString(path) || free.MatchString(path) && v >= 0 || json.Unmarshal(changed, &other) != nil {
					continue
				}
				body, _ := other.Encode()
				if _, err := shard.ParseManifest("manifest.json", body); err != nil {
					continue
				}
				fsys.Put("/d/manifest.json", body)
				if damage, err := shard.Verify(ctx, fsys, "/d", nil); err == nil && len(damage) == 0 {
					t.Errorf("%s = %g passes for %g", path, v, old)
				}
			}
			set(old)
		})
	})
}

// eachNumber calls visit for every number in a value of JSON.
func eachNumber(v any, path string, visit func(path string, set func(float64), old float64)) {
	at := func(key string, item any, set func(float64)) {
		if old, ok := item.(float64); ok {
			visit(path+key, set, old)
		}
		eachNumber(item, path+key, visit)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			at("."+key, item, func(x float64) { v[key] = x })
		}
	case []any:
		for i, item := range v {
			at(fmt.Sprintf("[%d]", i), item, func(x float64) { v[i] = x })
		}
	}
}

package shard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

// fixtures are corpora that lie in testdata/datasets as folders.
var fixtures = map[string]corpus{"all": few(allCols), "plain": few(plain)}

func few(c corpus) corpus {
	c.n = 120
	return c
}

// No flipped bit of a shard reaches a reader: every row that is read is right, and not all can be
// read. DSLOAD_FLIPS is how many are tried.
func TestFlipsAreNotRead(t *testing.T) {
	effort.RacedElsewhere(t)
	names := []string{"plain", "wide", "chat", "packed", "all"}
	flips, refused, rows := effort.Count(t, "DSLOAD_FLIPS", 60, 300, 3000), 0, 0
	images := map[string]*shardtest.FS{}
	for _, name := range names {
		c := few(corpora[name])
		images[name] = c.build(t)
	}
	const seed = 12
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range flips {
		name := names[i%len(names)]
		c, fsys := few(corpora[name]), images[name]
		files, contents := sortedFiles(fsys)
		file := files[rnd.IntN(len(files))]
		for !strings.HasSuffix(file, ".arrow") {
			file = files[rnd.IntN(len(files))]
		}
		at, bit := rnd.Int64N(int64(len(contents[file]))), byte(1)<<rnd.IntN(8)
		fsys.Flip(file, at, bit)
		n, err := readShuffled(fsys, c, rnd)
		what := fmt.Sprintf("seed %d, flip %d: %s %s, byte %d ^ %#x", seed, i, name, file, at, bit)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n == c.n {
			t.Fatalf("%s: not noticed", what)
		}
		refused += c.n - n
		rows += n
		fsys.Flip(file, at, bit)
	}
	t.Logf("%d flips: %d rows read, all right; %d refused", flips, rows, refused)
}

// readShuffled reads every row of a corpus once, in any order, half of them by their spans, and
// counts those that could be read. The error is for rows that are wrong.
func readShuffled(fsys shardfile.FS, c corpus, rnd *rand.Rand) (n int, err error) {
	d, err := shard.ReaderOptions{MaxOpenShards: 3, MaxOffsetBytes: int64(rnd.IntN(2)) << 20}.Open(fsys, "/d")
	if err != nil {
		return 0, nil
	}
	defer d.Close()
	d.KeepBatches(newRoom(rnd.Int64N(2) << 20))
	for _, s := range d.Manifest().Splits {
		r, err := d.Split(s.Name)
		if err != nil {
			return n, err
		}
		want := normals(c.rows(s.Name))
		var row shard.Row
		for _, i := range rnd.Perm(len(want)) {
			var got *dataset.Example
			if rnd.IntN(2) == 0 {
				if r.ReadRow(int64(i), &row) != nil {
					continue
				}
				got = toExample(&row)
			} else {
				rows, err := readSpans(r, []int64{int64(i)})
				if err != nil {
					continue
				}
				got = normal(rows[0])
				got.Document, got.Part = want[i].Document, want[i].Part
			}
			if !reflect.DeepEqual(want[i], normal(got)) {
				return n, fmt.Errorf("row %d of %s is wrong: %s", i, s.Name, cmp.Diff(want[i], got))
			}
			n++
		}
	}
	return n, nil
}

// twin is a corpus of the same shape with other ids: sizes, row counts and lengths are equal.
func (c corpus) twin(t *testing.T, fsys shardfile.FS, dir string) {
	t.Helper()
	o := c.options()
	o.Overwrite = true
	b, _, err := dataset.OpenBuilder(fsys, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range c.n {
		split, e := c.row(i)
		for j := range e.InputIDs {
			e.InputIDs[j] = (e.InputIDs[j] + 1) % uint32(c.schema.VocabSize)
		}
		if err := b.Row(split, e); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(b.File(shardfile.TokenizerName, strings.NewReader(`{"model":{}}`)),
		b.File(shardfile.RejectsName, strings.NewReader("")))
	if _, ferr := b.Finish(provenance); err != nil || ferr != nil {
		t.Fatal(err, ferr)
	}
}

// A dataset that is built over, or copied over, under an open reader never gives a row of the new
// one: the rows are the old ones, or ErrReplaced.
func TestReplacedDataset(t *testing.T) {
	c := plain
	c.n = 400
	replace := map[string]func(dir string){
		"built over": func(dir string) { c.twin(t, shardfile.OS(), dir) },
		"another shape": func(dir string) {
			o := wide
			o.n = 300
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := o.run(shardfile.OS(), dir, never); err != nil {
				t.Fatal(err)
			}
		},
		"being built": func(dir string) {
			o := c.options()
			o.Overwrite = true
			b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
		},
		"moved over": func(dir string) {
			c.twin(t, shardfile.OS(), dir+"2")
			if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+"2", dir)); err != nil {
				t.Fatal(err)
			}
		},
		"shards alone": func(dir string) {
			c.twin(t, shardfile.OS(), dir+"2")
			shards, err := filepath.Glob(dir + "2/*.arrow")
			for _, s := range shards {
				err = errors.Join(err, os.Rename(s, filepath.Join(dir, filepath.Base(s))))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, replace := range replace {
		for _, o := range []shard.ReaderOptions{{MaxOpenShards: 1, MaxIndexBytes: 1}, {}, {MaxOpenShards: 1},
			{MaxOpenShards: 3, MaxOffsetBytes: 1 << 20}}[:effort.Of(2, 4, 4)] {
			t.Run(fmt.Sprintf("%s %+v", name, o), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "d")
				if err := c.run(shardfile.OS(), dir, never); err != nil {
					t.Fatal(err)
				}
				d, err := o.Open(shardfile.OS(), dir)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				r, want := split(t, d, "train"), normals(c.rows("train"))
				rows := make([]int64, len(want))
				spans := make([]shard.Span, len(want))
				for i := range rows {
					rows[i] = int64(i)
				}
				// Some shards were read before, some only located, some not touched.
				if err := errors.Join(r.Locate(spans[:200], rows[:200]), d.Unchanged()); err != nil {
					t.Fatal(err)
				}
				replace(dir)
				refused := 0
				var row shard.Row
				for i := range want {
					err := r.ReadRow(int64(i), &row)
					if err == nil && differ(want[i], toExample(&row)) != "" {
						t.Fatalf("row %d is the new dataset's", i)
					}
					if i < 200 && err == nil {
						raw, serr := r.AppendIDs(nil, spans[i:i+1])
						got := shard.Row{Width: 2, InputIDs: raw}
						if err = serr; err == nil && !cmp.Equal(want[i].InputIDs, got.AppendInputIDs(nil)) {
							t.Fatalf("row %d by its span is the new dataset's", i)
						}
					}
					if err != nil {
						refused++
						if name != "shards alone" && !errors.Is(err, shard.ErrReplaced) || name == "shards alone" &&
							!errors.Is(err, shard.ErrCorrupt) {
							t.Fatalf("row %d: %v", i, err)
						}
					}
				}
				if refused == 0 {
					t.Error("no row was refused")
				}
				if err := d.Unchanged(); errors.Is(err, shard.ErrReplaced) == (name == "shards alone") {
					t.Errorf("Unchanged: %v", err)
				}
			})
		}
	}
}

// opsOfRows reads all rows of a split, and returns the number of operations that it took.
func opsOfRows(t *testing.T, fsys *shardtest.FS, r *shard.Split) int {
	t.Helper()
	var row shard.Row
	before := fsys.Ops()
	for i := range r.NumRows() {
		if err := r.ReadRow(i, &row); err != nil {
			t.Fatal(err)
		}
	}
	return fsys.Ops() - before
}

// A record batch is read for its checksum once, however often its rows are, and by whom.
func TestBatchesAreCheckedOnce(t *testing.T) {
	fsys := plain.build(t)
	d := openDataset(t, fsys, shard.ReaderOptions{})
	r := split(t, d, "train")
	opsOfRows(t, fsys, r)
	if first, n := int(r.NumRows()), opsOfRows(t, fsys, r); n > 5*first {
		t.Errorf("%d operations for %d rows that were read before", n, first)
	}
}

// Verify names the record batches of a shard that are damaged.
func TestVerifyNamesBatches(t *testing.T) {
	c := plain
	c.n = 200
	fsys := c.build(t)
	const name = "/d/train-00000.arrow"
	fsys.Flip(name, 1500, 4)
	fsys.Flip(name, 3000, 4)
	damage, err := shard.Verify(ctx, fsys, "/d", nil)
	if err != nil || len(damage) != 1 {
		t.Fatal(damage, err)
	}
	for _, want := range []string{"record batches: ", "(rows 0 to 19, bytes 512 to 1983)", ", 1 (rows 20 to 42",
		"its BLAKE3 is"} {
		if !strings.Contains(damage[0].Err.Error(), want) {
			t.Errorf("%q is not in: %v", want, damage[0].Err)
		}
	}
}

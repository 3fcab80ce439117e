package shard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// corpus makes rows as a build would: mostly train, some val, with every column that the schema
// asks for.
type corpus struct {
	schema shard.Schema
	n      int
	maxLen int
	stop   bool // close the builder after n rows instead of finishing
	shards int  // BuilderOptions.MaxShards
}

func (c corpus) row(i int) (split string, e *dataset.Example) {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	ids := func(n int) []uint32 {
		v := make([]uint32, n)
		for j := range v {
			v[j] = uint32(rnd.IntN(c.schema.VocabSize))
		}
		return v
	}
	e = &dataset.Example{InputIDs: ids(1 + rnd.IntN(c.maxLen)), Document: int64(i / 2), Part: int32(i % 2)}
	if c.schema.Labels {
		e.Labels = ids(rnd.IntN(c.maxLen))
	}
	if c.schema.LossMask {
		e.LossMask = make([]bool, len(e.InputIDs))
		for j := range e.LossMask {
			e.LossMask[j] = rnd.IntN(2) == 0
		}
	}
	if c.schema.Segments {
		for left := len(e.InputIDs); left > 0; {
			n := 1 + rnd.IntN(left)
			e.Segments = append(e.Segments, int32(n))
			left -= n
		}
	}
	if split = "train"; i%7 == 3 {
		split = "val"
	}
	return split, e
}

func (c corpus) options() dataset.BuilderOptions {
	return dataset.BuilderOptions{Schema: c.schema, ShardBytes: 4 << 10, MaxShards: c.shards,
		Settings: json.RawMessage(`{"max_length": 512, "tokenizer": {"name": "t"}}`)}
}

var provenance = dataset.Provenance{
	Tokenizer: shard.TokenizerInfo{Name: "t", Fingerprint: "f00", VocabSize: 300,
		Special: map[string]int64{"eos": 2, "bos": 1}},
	Sources:  []shard.SourceInfo{{URI: "a.txt", Bytes: 12, Checksum: "xxh3-128:00"}},
	Counters: map[string]int64{"b": 2, "a": 1},
	Run:      map[string]any{"seconds": 1.5, "host": "h"},
}

// run builds the rest of the corpus after whatever the folder holds, with checkpoints as at says.
func (c corpus) run(fsys shardfile.FS, dir string, at func(i int) bool) error {
	b, ckpt, err := dataset.OpenBuilder(fsys, dir, c.options())
	if errors.Is(err, dataset.ErrFinished) {
		return nil
	}
	if err != nil {
		return err
	}
	defer b.Close()
	i := 0
	if ckpt != nil {
		if _, err := fmt.Sscanf(string(ckpt.Cursor), "row %d", &i); err != nil {
			return err
		}
	}
	_, train, _ := b.Written("train")
	_, val, _ := b.Written("val")
	if int(train+val) != i {
		return fmt.Errorf("cursor at row %d, builder has %d and %d", i, train, val)
	}
	for ; i < c.n; i++ {
		split, e := c.row(i)
		if err := b.Row(split, e); err != nil {
			return err
		}
		if at(i) {
			if err := b.Save(fmt.Appendf(nil, "row %d", i+1)); err != nil {
				return err
			}
		}
	}
	if c.stop {
		return b.Close()
	}
	if err := b.File(shardfile.TokenizerName, strings.NewReader(`{"model":{}}`)); err != nil {
		return err
	}
	if err := b.File(shardfile.RejectsName, strings.NewReader("")); err != nil {
		return err
	}
	p := provenance
	if c.schema.VocabSize <= 2 {
		p.Tokenizer.Special = nil // its ids are beyond the vocabulary
	}
	_, err = b.Finish(p)
	return err
}

func never(int) bool { return false }

func every(n int) func(int) bool { return func(i int) bool { return i%n == n-1 } }

// build makes the whole corpus in memory, without a checkpoint.
func (c corpus) build(t testing.TB) *shardtest.FS {
	t.Helper()
	fsys := shardtest.New()
	if err := c.run(fsys, "/d", never); err != nil {
		t.Fatal(err)
	}
	if n := fsys.OpenFiles(); n != 0 {
		t.Fatalf("%d files left open", n)
	}
	return fsys
}

var (
	plain   = corpus{schema: shard.Schema{VocabSize: 300}, n: 900, maxLen: 30}
	wide    = corpus{schema: shard.Schema{VocabSize: 100_000, Labels: true}, n: 300, maxLen: 30}
	chat    = corpus{schema: shard.Schema{VocabSize: 65536, LossMask: true}, n: 300, maxLen: 50}
	packed  = corpus{schema: shard.Schema{VocabSize: 65537, Segments: true}, n: 300, maxLen: 60}
	allCols = corpus{schema: shard.Schema{VocabSize: 1000, Labels: true, LossMask: true, Segments: true}, n: 300,
		maxLen: 40}
	corpora = map[string]corpus{"plain": plain, "wide": wide, "chat": chat, "packed": packed, "all": allCols}
)

func mustEqual(t testing.TB, what string, got, want map[string][]byte) {
	t.Helper()
	for n := range want {
		if !bytes.Equal(got[n], want[n]) {
			t.Fatalf("%s: %s differs (%d bytes, want %d)", what, n, len(got[n]), len(want[n]))
		}
	}
	for n := range got {
		if _, ok := want[n]; !ok {
			t.Fatalf("%s: %s is left over", what, n)
		}
	}
}

// Bytes must not depend on checkpoints nor on how often the build was closed and opened again.
func TestCheckpointsChangeNothing(t *testing.T) {
	effort.OneGoroutine(t)
	for name, c := range corpora {
		t.Run(name, func(t *testing.T) {
			want := c.build(t).Files()
			if len(want) < 6 {
				t.Fatalf("only %d files: not enough shards to test anything", len(want))
			}
			for seed := range uint64(12) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				fsys := shardtest.New()
				for done := false; !done; {
					part := c
					part.n = rnd.IntN(c.n + c.n/4)
					done = part.n >= c.n
					if part.n = min(part.n, c.n); !done {
						part.stop = true
					}
					if err := part.run(fsys, "/d", func(int) bool { return rnd.IntN(20) == 0 }); err != nil {
						t.Fatal(err)
					}
				}
				mustEqual(t, fmt.Sprintf("seed %d", seed), fsys.Files(), want)
				if n := fsys.OpenFiles(); n != 0 {
					t.Fatalf("%d files left open", n)
				}
			}
		})
	}
}

// stride leaves out operations; make soak tries every one.
func stride() int { return effort.Of(23, 7, 1) }

// A crash at any operation, with any loss, loses and doubles nothing: the resumed build ends with
// the same bytes.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, name := range []string{"plain", "all"} {
		c := corpora[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := c.build(t).Files()
			at := every(90)
			clean := shardtest.New()
			if err := c.run(clean, "/d", at); err != nil {
				t.Fatal(err)
			}
			total := clean.Ops()
			crashes := 0
			for k := 1; k <= total; k += stride() {
				fsys := shardtest.New()
				fsys.CutAt(k)
				if err := c.run(fsys, "/d", at); !errors.Is(err, shardtest.ErrCut) {
					t.Fatalf("cut at %d of %d: %v", k, total, err)
				}
				if n := fsys.OpenFiles(); n != 0 {
					t.Fatalf("cut at %d: %d files left open", k, n)
				}
				for variant := range 4 {
					loss := shardtest.Loss(min(variant, 2))
					image := fsys.CrashImage(loss, uint64(k*4+variant))
					what := fmt.Sprintf("cut at %d of %d, loss %d, seed %d", k, total, loss, k*4+variant)
					if err := checkWholeOrNone(image); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					crashes++
					// Some crash a second time while they resume.
					if variant == 3 {
						image.CutAt(1 + k%40)
						if err := c.run(image, "/d", at); err != nil && !errors.Is(err, shardtest.ErrCut) {
							t.Fatalf("%s: %v", what, err)
						}
						image = image.CrashImage(loss, uint64(k))
						crashes++
					}
					if err := c.run(image, "/d", at); err != nil {
						t.Fatalf("%s: resume: %v", what, err)
					}
					mustEqual(t, what, image.Files(), want)
				}
			}
			t.Logf("%d crashes at %d operations", crashes, total)
		})
	}
}

// checkWholeOrNone: a folder either has no manifest or is a whole dataset.
func checkWholeOrNone(fsys *shardtest.FS) error {
	damage, err := shard.Verify(ctx, fsys, "/d", nil)
	if errors.Is(err, shard.ErrNotFound) {
		return nil
	}
	if len(damage) > 0 {
		return fmt.Errorf("a manifest, but %s: %w", damage[0].File, damage[0].Err)
	}
	return err
}

// Any operation may fail, in passing or for good; the next run completes to the same bytes.
func TestFaultAtEveryOperation(t *testing.T) {
	c := allCols
	want := c.build(t).Files()
	at := every(90)
	clean := shardtest.New()
	if err := c.run(clean, "/d", at); err != nil {
		t.Fatal(err)
	}
	total := clean.Ops()
	eio := errors.New("input/output error")
	silent := 0
	for k := 1; k <= total; k += stride() {
		for _, short := range []bool{false, true} {
			fsys := shardtest.New()
			fsys.FailAt(k, eio, short)
			err := c.run(fsys, "/d", at)
			if err == nil {
				silent++ // closing a file that was only read, and the like
			} else if !errors.Is(err, eio) && !strings.Contains(err.Error(), eio.Error()) {
				t.Fatalf("fault at %d of %d: %v", k, total, err)
			}
			if n := fsys.OpenFiles(); n != 0 {
				t.Fatalf("fault at %d: %d files left open", k, n)
			}
			if err := c.run(fsys, "/d", at); err != nil {
				t.Fatalf("fault at %d of %d: second run: %v", k, total, err)
			}
			mustEqual(t, fmt.Sprintf("fault at %d of %d", k, total), fsys.Files(), want)
		}
	}
	if silent > total/20 {
		t.Errorf("%d of %d faults went unnoticed", silent, 2*total)
	}
}

// A full disk stops the build with ENOSPC, and it continues when there is room.
func TestDiskFull(t *testing.T) {
	effort.OneGoroutine(t)
	c := plain
	want := c.build(t).Files()
	size := int64(0)
	for _, data := range want {
		size += int64(len(data))
	}
	full := 0
	for limit := int64(0); limit < size+8<<10; limit += 997 {
		fsys := shardtest.New()
		fsys.Limit(limit)
		if err := c.run(fsys, "/d", every(90)); err != nil {
			full++
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/d/") {
				t.Fatalf("limit %d: %v", limit, err)
			}
		}
		fsys.Limit(-1)
		if err := c.run(fsys, "/d", every(90)); err != nil {
			t.Fatalf("limit %d: second run: %v", limit, err)
		}
		mustEqual(t, fmt.Sprintf("limit %d", limit), fsys.Files(), want)
	}
	if full < 20 {
		t.Errorf("only %d limits were too small", full)
	}
}

// BuilderBytes bounds what a Builder holds, with long rows, both splits, and checkpoints.
func TestBuilderBytes(t *testing.T) {
	effort.OneGoroutine(t)
	for _, longest := range []int{64, 4096, 1 << 19} {
		for _, schema := range []shard.Schema{{VocabSize: 300}, {VocabSize: 1 << 20, Labels: true, LossMask: true,
			Segments: true}} {
			o := dataset.BuilderOptions{Schema: schema, MaxRowTokens: longest, MaxShards: 1000}
			e := &dataset.Example{InputIDs: make([]uint32, longest)}
			if schema.Labels {
				e.Labels, e.LossMask, e.Segments = make([]uint32, longest), make([]bool, longest),
					make([]int32, longest)
				for i := range e.Segments {
					e.Segments[i] = 1
				}
			}
			dir := filepath.Join(t.TempDir(), "d")
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			b, _, err := dataset.OpenBuilder(shardfile.OS(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			peak := uint64(0)
			for i := range max(20, 1<<18/longest) {
				e.Document = int64(i)
				if err := b.Row([]string{"train", "val"}[i%2], e); err != nil {
					t.Fatal(err)
				}
				if i%500 == 19 {
					if err := b.Save(nil); err != nil {
						t.Fatal(err)
					}
					runtime.GC()
					runtime.ReadMemStats(&after)
					peak = max(peak, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
				}
			}
			b.Close()
			limit := uint64(dataset.BuilderBytes(o))
			if peak > limit || peak < limit/50 {
				t.Errorf("rows of %d, %+v: %d bytes held, BuilderBytes says %d", longest, schema, peak, limit)
			}
			// Reading the checkpoint back must not take more than that, garbage included.
			runtime.ReadMemStats(&before)
			if b, _, err = dataset.OpenBuilder(shardfile.OS(), dir, o); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > limit {
				t.Errorf("rows of %d, %+v: %d bytes allocated to resume, BuilderBytes says %d", longest, schema, took,
					limit)
			}
			b.Close()
		}
	}
}

// A file is written to its end, or not at all: an error that wraps io.EOF is no end.
func TestWriteFileOfBrokenReader(t *testing.T) {
	fsys, broken := shardtest.New(), fmt.Errorf("connection lost: %w", io.EOF)
	b, _, err := dataset.OpenBuilder(fsys, "/d", plain.options())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r := io.MultiReader(strings.NewReader(`{"model":`), iotest.ErrReader(broken))
	if err := b.File(shardfile.TokenizerName, r); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, there := fsys.Files()["/d/"+shardfile.TokenizerName]; there {
		t.Error("half a file is there")
	}
}

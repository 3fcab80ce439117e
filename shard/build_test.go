package shard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/shard/shardtest"
	"github.com/google/go-cmp/cmp"
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

func (c corpus) row(i int) (split string, e *shard.Example) {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	ids := func(n int) []uint32 {
		v := make([]uint32, n)
		for j := range v {
			v[j] = uint32(rnd.IntN(c.schema.VocabSize))
		}
		return v
	}
	e = &shard.Example{InputIDs: ids(1 + rnd.IntN(c.maxLen)), Document: int64(i / 2), Part: int32(i % 2)}
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

func (c corpus) options() shard.BuilderOptions {
	return shard.BuilderOptions{Schema: c.schema, ShardBytes: 4 << 10, MaxShards: c.shards,
		Settings: json.RawMessage(`{"max_length": 512, "tokenizer": {"name": "t"}}`)}
}

var provenance = shard.Provenance{
	Tokenizer: shard.TokenizerInfo{Name: "t", Fingerprint: "f00", VocabSize: 300,
		Special: map[string]int64{"eos": 2, "bos": 1}},
	Sources:  []shard.SourceInfo{{URI: "a.txt", Bytes: 12, Checksum: "xxh3-128:00"}},
	Counters: map[string]int64{"b": 2, "a": 1},
	Run:      map[string]any{"seconds": 1.5, "host": "h"},
}

// run builds the rest of the corpus after whatever the folder holds, with checkpoints as at says.
func (c corpus) run(fsys shard.FS, dir string, at func(i int) bool) error {
	b, ckpt, err := shard.OpenBuilder(fsys, dir, c.options())
	if errors.Is(err, shard.ErrFinished) {
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
	train, _ := b.Written("train")
	val, _ := b.Written("val")
	if int(train+val) != i {
		return fmt.Errorf("cursor at row %d, builder has %d and %d", i, train, val)
	}
	for ; i < c.n; i++ {
		split, e := c.row(i)
		if err := b.Append(split, e); err != nil {
			return err
		}
		if at(i) {
			if err := b.Checkpoint(fmt.Appendf(nil, "row %d", i+1)); err != nil {
				return err
			}
		}
	}
	if c.stop {
		return b.Close()
	}
	if err := b.WriteFile(shard.TokenizerName, strings.NewReader(`{"model":{}}`)); err != nil {
		return err
	}
	if err := b.WriteFile(shard.RejectsName, strings.NewReader("")); err != nil {
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

func TestOpenBuilder(t *testing.T) {
	c := plain
	open := func(fsys shard.FS, change func(*shard.BuilderOptions)) error {
		o := c.options()
		if change != nil {
			change(&o)
		}
		b, _, err := shard.OpenBuilder(fsys, "/d", o)
		if err == nil {
			err = b.Close()
		}
		return err
	}
	unfinished := func() *shardtest.FS {
		fsys := shardtest.New()
		b, _, err := shard.OpenBuilder(fsys, "/d", c.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Checkpoint([]byte("here")), b.Close()); err != nil {
			t.Fatal(err)
		}
		return fsys
	}
	settings := func(s string) func(*shard.BuilderOptions) {
		return func(o *shard.BuilderOptions) { o.Settings = json.RawMessage(s) }
	}
	for name, fsys := range map[string]*shardtest.FS{"unfinished": unfinished(), "finished": c.build(t)} {
		t.Run("settings "+name, func(t *testing.T) {
			cases := []struct {
				change           func(*shard.BuilderOptions)
				name, have, want string
			}{
				{settings(`{"tokenizer": {"name": "u"}, "max_length": 512}`), "tokenizer.name", `"t"`, `"u"`},
				{settings(`{"tokenizer": {"name": "t"}, "max_length": 513}`), "max_length", `512`, `513`},
				{settings(`{"tokenizer": {"name": "t"}, "max_length": 512, "pack": "concat"}`), "pack", `unset`,
					`"concat"`},
				{settings(`{"max_length": 512}`), "tokenizer", `{"name":"t"}`, `unset`},
				{func(o *shard.BuilderOptions) { o.Schema.Labels = true }, "schema.labels", "false", "true"},
			}
			for _, tc := range cases {
				var e *shard.SettingsError
				if err := open(fsys, tc.change); !errors.As(err, &e) {
					t.Fatalf("%s: %v", tc.name, err)
				}
				if diff := cmp.Diff(shard.SettingsError{Dir: "/d", Name: tc.name, Have: tc.have, Want: tc.want},
					*e); diff != "" {
					t.Error(diff)
				}
			}
			err := open(fsys, settings(`{ "tokenizer":{"name":"t"},"max_length":512 }`))
			if name == "finished" != errors.Is(err, shard.ErrFinished) || name == "unfinished" && err != nil {
				t.Errorf("equal settings: %v", err)
			}
		})
	}
	t.Run("nothing built", func(t *testing.T) {
		fsys := shardtest.New()
		for i, change := range []func(*shard.BuilderOptions){nil, settings(`{"max_length": 7}`),
			func(o *shard.BuilderOptions) { o.Schema.Labels = true; o.ShardBytes = 8 << 10 }} {
			if err := open(fsys, change); err != nil {
				t.Fatalf("options number %d: %v", i, err)
			}
		}
		u, err := shard.ReadUnfinished(fsys, "/d")
		if err != nil || string(u.Settings) != string(c.options().Settings) || u.Cursor != nil {
			t.Errorf("the folder is claimed with %+v, %v", u, err)
		}
	})
	t.Run("settings that may change", func(t *testing.T) {
		fsys := unfinished()
		change := func(o *shard.BuilderOptions) {
			o.Settings = json.RawMessage(`{"tokenizer": {"name": "t"}, "max_length": 513}`)
			o.MayChange = func(name, have, want string) bool {
				return name == "max_length" && have == "512" &&
					want == "513"
			}
		}
		b, checkpoint, err := shard.OpenBuilder(fsys, "/d",
			func() shard.BuilderOptions { o := c.options(); change(&o); return o }())
		if err != nil || checkpoint == nil || string(checkpoint.Cursor) != "here" {
			t.Fatalf("%+v, %v", checkpoint, err)
		}
		if err := errors.Join(b.Checkpoint([]byte("there")), b.Close()); err != nil {
			t.Fatal(err)
		}
		if u, err := shard.ReadUnfinished(fsys, "/d"); err != nil || !strings.Contains(string(u.Settings), "513") ||
			string(u.Cursor) != "there" {
			t.Errorf("%+v, %v", u, err)
		}
		var e *shard.SettingsError
		if err := open(fsys, nil); !errors.As(err, &e) { // back again
			t.Error(err)
		}
		if err := open(c.build(t), change); !errors.As(err, &e) { // what is finished stays as it is
			t.Error(err)
		}
	})
	t.Run("shard bytes", func(t *testing.T) {
		var e *shard.SettingsError
		if err := open(unfinished(), func(o *shard.BuilderOptions) { o.ShardBytes = 8 << 10 }); !errors.As(err, &e) ||
			e.Name != "shard_bytes" {
			t.Error(err)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		for _, name := range []string{"notes.txt", "train-00000.arrow", "manifest.json.tmp", "sub/x"} {
			fsys := shardtest.New()
			fsys.Put("/d/"+name, []byte("mine"))
			fsys.Put("/d/.hidden", []byte("mine"))
			if err := open(fsys, nil); !errors.Is(err, shard.ErrForeign) {
				t.Errorf("%s: %v", name, err)
			}
			if string(fsys.Files()["/d/"+name]) != "mine" {
				t.Errorf("%s is gone", name)
			}
		}
	})
	t.Run("overwrite", func(t *testing.T) {
		want := c.build(t).Files()
		fsys := wide.build(t)
		fsys.Put("/d/notes.txt", []byte("mine"))
		fsys.Put("/d/train-00099.arrow", []byte("of an earlier build"))
		if err := open(fsys, func(o *shard.BuilderOptions) { o.Overwrite = true }); err != nil {
			t.Fatal(err)
		}
		if err := c.run(fsys, "/d", never); err != nil {
			t.Fatal(err)
		}
		want["/d/notes.txt"] = []byte("mine")
		mustEqual(t, "overwrite", fsys.Files(), want)
	})
	t.Run("damaged", func(t *testing.T) {
		fsys := c.build(t)
		fsys.Flip("/d/manifest.json", 40, 1)
		if err := open(fsys, nil); !errors.Is(err, shard.ErrCorrupt) {
			t.Error(err)
		}
		fsys = unfinished()
		fsys.Flip("/d/build.checkpoint", 40, 1)
		if err := open(fsys, nil); !errors.Is(err, shard.ErrCorrupt) {
			t.Error(err)
		}
	})
	t.Run("bad options", func(t *testing.T) {
		for i, change := range []func(*shard.BuilderOptions){
			func(o *shard.BuilderOptions) { o.Schema.VocabSize = 0 },
			func(o *shard.BuilderOptions) { o.ShardBytes = 100 },
			func(o *shard.BuilderOptions) { o.MaxRowTokens = -1 },
			settings(`[]`), settings(`null`), settings(`{`),
		} {
			if err := open(shardtest.New(), change); err == nil {
				t.Errorf("case %d: no error", i)
			}
		}
	})
}

// A crash while an old dataset is being overwritten never leaves it half there as a dataset.
func TestCrashWhileOverwriting(t *testing.T) {
	effort.OneGoroutine(t)
	for k := 1; ; k++ {
		fsys := wide.build(t)
		fsys.CutAt(fsys.Ops() + k)
		o := plain.options()
		o.Overwrite = true
		b, _, err := shard.OpenBuilder(fsys, "/d", o)
		if err == nil {
			b.Close()
			if k < 10 {
				t.Fatalf("only %d operations", k)
			}
			return
		}
		for loss := shardtest.LoseAll; loss <= shardtest.LoseSome; loss++ {
			image := fsys.CrashImage(loss, uint64(k))
			if err := checkWholeOrNone(image); err != nil {
				t.Fatalf("cut at %d: %v", k, err)
			}
			b, _, err := shard.OpenBuilder(image, "/d", o)
			if err != nil {
				t.Fatalf("cut at %d: %v", k, err)
			}
			b.Close()
		}
	}
}

func TestAppendErrors(t *testing.T) {
	o := allCols.options()
	o.MaxRowTokens = 10
	b, _, err := shard.OpenBuilder(shardtest.New(), "/d", o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	good := func() *shard.Example {
		return &shard.Example{InputIDs: []uint32{1, 2}, Labels: []uint32{3}, LossMask: []bool{true, false},
			Segments: []int32{1, 1}}
	}
	cases := []struct {
		name   string
		change func(*shard.Example)
		want   error
	}{
		{"no ids", func(e *shard.Example) { e.InputIDs = nil }, shard.ErrSchema},
		{"no labels", func(e *shard.Example) { e.Labels = nil }, shard.ErrSchema},
		{"short mask", func(e *shard.Example) { e.LossMask = e.LossMask[:1] }, shard.ErrSchema},
		{"id", func(e *shard.Example) { e.InputIDs[1] = 1000 }, shard.ErrRange},
		{"label", func(e *shard.Example) { e.Labels[0] = 1 << 31 }, shard.ErrRange},
		{"negative document", func(e *shard.Example) { e.Document = -1 }, shard.ErrRange},
		{"long", func(e *shard.Example) {
			e.InputIDs, e.LossMask, e.Segments = make([]uint32, 11), make([]bool, 11), []int32{11}
		}, shard.ErrTooLarge},
		{"segments", func(e *shard.Example) { e.Segments = []int32{1, 2} }, nil},
	}
	for _, tc := range cases {
		e := good()
		tc.change(e)
		if err := b.Append("train", e); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := b.Append("test", good()); !errors.Is(err, shard.ErrNoSplit) {
		t.Error(err)
	}
	if err := b.Append("train", good()); err != nil {
		t.Fatal(err)
	}
	if rows, tokens := b.Written("train"); rows != 1 || tokens != 2 {
		t.Errorf("%d rows, %d tokens", rows, tokens)
	}
	p, _, err := shard.OpenBuilder(shardtest.New(), "/d", plain.options())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, e := range []shard.Example{{Document: 1, Part: 1}, {Document: 1, Part: 1}, {Document: 1},
		{Document: 0, Part: 5}} {
		e.InputIDs = []uint32{1}
		err = errors.Join(err, p.Append("train", &e))
	}
	if strings.Count(fmt.Sprint(err), shard.ErrOrder.Error()) != 3 {
		t.Errorf("order: %v", err)
	}
}

// A resume clears away what a crash leaves: later shards, temporary files, bytes after the checkpoint.
func TestResumeClearsAway(t *testing.T) {
	c := plain
	want := c.build(t).Files()
	part := c
	part.n, part.stop = 600, true
	fsys := shardtest.New()
	if err := part.run(fsys, "/d", every(600)); err != nil {
		t.Fatal(err)
	}
	open := ""
	for name, data := range fsys.Files() {
		if strings.HasPrefix(name, "/d/train") && strings.HasSuffix(name, ".tmp") {
			open = name
			fsys.Put(name, append(data, bytes.Repeat([]byte("later"), 5000)...))
		}
	}
	if open == "" {
		t.Fatal("no open shard")
	}
	for _, name := range []string{"train-00050.arrow", "val-00050.arrow.tmp", "manifest.json.tmp",
		"build.checkpoint.tmp"} {
		fsys.Put("/d/"+name, []byte("x"))
	}
	if err := c.run(fsys, "/d", never); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "resumed", fsys.Files(), want)

	// Other damage to what the checkpoint counts on is refused.
	for name, change := range map[string]func(data []byte) []byte{
		open:                   func(d []byte) []byte { d[100] ^= 1; return d },
		open + " ":             func(d []byte) []byte { return d[:len(d)/2] },
		"/d/train-00000.arrow": func(d []byte) []byte { return d[:len(d)-1] },
		"/d/val-00000.arrow":   func([]byte) []byte { return nil },
	} {
		name = strings.TrimSpace(name)
		fsys := shardtest.New()
		if err := part.run(fsys, "/d", every(600)); err != nil {
			t.Fatal(err)
		}
		fsys.Put(name, change(fsys.Files()[name]))
		var damaged *shard.FileError
		if err := c.run(fsys, "/d", never); !errors.As(err, &damaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if fsys.OpenFiles() != 0 {
			t.Errorf("%s: files left open", name)
		}
	}
}

// BuilderBytes bounds what a Builder holds, with long rows, both splits, and checkpoints.
func TestBuilderBytes(t *testing.T) {
	effort.OneGoroutine(t)
	for _, longest := range []int{64, 4096, 1 << 19} {
		for _, schema := range []shard.Schema{{VocabSize: 300}, {VocabSize: 1 << 20, Labels: true, LossMask: true,
			Segments: true}} {
			o := shard.BuilderOptions{Schema: schema, MaxRowTokens: longest, MaxShards: 1000}
			e := &shard.Example{InputIDs: make([]uint32, longest)}
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
			b, _, err := shard.OpenBuilder(shard.OS(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			peak := uint64(0)
			for i := range max(20, 1<<18/longest) {
				e.Document = int64(i)
				if err := b.Append([]string{"train", "val"}[i%2], e); err != nil {
					t.Fatal(err)
				}
				if i%500 == 19 {
					if err := b.Checkpoint(nil); err != nil {
						t.Fatal(err)
					}
					runtime.GC()
					runtime.ReadMemStats(&after)
					peak = max(peak, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
				}
			}
			b.Close()
			limit := uint64(shard.BuilderBytes(o))
			if peak > limit || peak < limit/50 {
				t.Errorf("rows of %d, %+v: %d bytes held, BuilderBytes says %d", longest, schema, peak, limit)
			}
			// Reading the checkpoint back must not take more than that, garbage included.
			runtime.ReadMemStats(&before)
			if b, _, err = shard.OpenBuilder(shard.OS(), dir, o); err != nil {
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

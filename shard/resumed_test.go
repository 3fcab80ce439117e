package shard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
	"github.com/google/go-cmp/cmp"
)

func TestOpenBuilder(t *testing.T) {
	c := plain
	open := func(fsys shardfile.FS, change func(*dataset.BuilderOptions)) error {
		o := c.options()
		if change != nil {
			change(&o)
		}
		b, _, err := dataset.OpenBuilder(fsys, "/d", o)
		if err == nil {
			err = b.Close()
		}
		return err
	}
	unfinished := func() *shardtest.FS {
		fsys := shardtest.New()
		b, _, err := dataset.OpenBuilder(fsys, "/d", c.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Save([]byte("here")), b.Close()); err != nil {
			t.Fatal(err)
		}
		return fsys
	}
	settings := func(s string) func(*dataset.BuilderOptions) {
		return func(o *dataset.BuilderOptions) { o.Settings = json.RawMessage(s) }
	}
	for name, fsys := range map[string]*shardtest.FS{"unfinished": unfinished(), "finished": c.build(t)} {
		t.Run("settings "+name, func(t *testing.T) {
			cases := []struct {
				change           func(*dataset.BuilderOptions)
				name, have, want string
			}{
				{settings(`{"tokenizer": {"name": "u"}, "max_length": 512}`), "tokenizer.name", `"t"`, `"u"`},
				{settings(`{"tokenizer": {"name": "t"}, "max_length": 513}`), "max_length", `512`, `513`},
				{settings(`{"tokenizer": {"name": "t"}, "max_length": 512, "pack": "concat"}`), "pack", `unset`,
					`"concat"`},
				{settings(`{"max_length": 512}`), "tokenizer", `{"name":"t"}`, `unset`},
				{func(o *dataset.BuilderOptions) { o.Schema.Labels = true }, "schema.labels", "false", "true"},
			}
			for _, tc := range cases {
				var e *dataset.SettingsError
				if err := open(fsys, tc.change); !errors.As(err, &e) {
					t.Fatalf("%s: %v", tc.name, err)
				}
				if diff := cmp.Diff(dataset.SettingsError{Dir: "/d", Name: tc.name, Have: tc.have, Want: tc.want},
					*e); diff != "" {
					t.Error(diff)
				}
			}
			err := open(fsys, settings(`{ "tokenizer":{"name":"t"},"max_length":512 }`))
			if name == "finished" != errors.Is(err, dataset.ErrFinished) || name == "unfinished" && err != nil {
				t.Errorf("equal settings: %v", err)
			}
		})
	}
	t.Run("nothing built", func(t *testing.T) {
		fsys := shardtest.New()
		for i, change := range []func(*dataset.BuilderOptions){nil, settings(`{"max_length": 7}`),
			func(o *dataset.BuilderOptions) { o.Schema.Labels = true; o.ShardBytes = 8 << 10 }} {
			if err := open(fsys, change); err != nil {
				t.Fatalf("options number %d: %v", i, err)
			}
		}
		u, err := dataset.ReadUnfinished(fsys, "/d")
		if err != nil || string(u.Settings) != string(c.options().Settings) || u.Cursor != nil {
			t.Errorf("the folder is claimed with %+v, %v", u, err)
		}
	})
	t.Run("settings that may change", func(t *testing.T) {
		fsys := unfinished()
		change := func(o *dataset.BuilderOptions) {
			o.Settings = json.RawMessage(`{"tokenizer": {"name": "t"}, "max_length": 513}`)
			o.MayChange = func(name, have, want string) bool {
				return name == "max_length" && have == "512" &&
					want == "513"
			}
		}
		b, checkpoint, err := dataset.OpenBuilder(fsys, "/d",
			func() dataset.BuilderOptions { o := c.options(); change(&o); return o }())
		if err != nil || checkpoint == nil || string(checkpoint.Cursor) != "here" {
			t.Fatalf("%+v, %v", checkpoint, err)
		}
		if err := errors.Join(b.Save([]byte("there")), b.Close()); err != nil {
			t.Fatal(err)
		}
		if u, err := dataset.ReadUnfinished(fsys, "/d"); err != nil || !strings.Contains(string(u.Settings), "513") ||
			string(u.Cursor) != "there" {
			t.Errorf("%+v, %v", u, err)
		}
		var e *dataset.SettingsError
		if err := open(fsys, nil); !errors.As(err, &e) { // back again
			t.Error(err)
		}
		if err := open(c.build(t), change); !errors.As(err, &e) { // what is finished stays as it is
			t.Error(err)
		}
	})
	t.Run("shard bytes", func(t *testing.T) {
		var e *dataset.SettingsError
		if err := open(unfinished(), func(o *dataset.BuilderOptions) { o.ShardBytes = 8 << 10 }); !errors.As(err, &e) ||
			e.Name != "shard_bytes" {
			t.Error(err)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		for _, name := range []string{"notes.txt", "train-00000.arrow", "manifest.json.tmp", "sub/x"} {
			fsys := shardtest.New()
			fsys.Put("/d/"+name, []byte("mine"))
			fsys.Put("/d/.hidden", []byte("mine"))
			if err := open(fsys, nil); !errors.Is(err, dataset.ErrForeign) {
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
		fsys.Put("/d/train-00099.arrow", fsys.Files()["/d/train-00000.arrow"]) // of an earlier build
		if err := open(fsys, func(o *dataset.BuilderOptions) { o.Overwrite = true }); err != nil {
			t.Fatal(err)
		}
		if err := c.run(fsys, "/d", never); err != nil {
			t.Fatal(err)
		}
		want["/d/notes.txt"] = []byte("mine")
		mustEqual(t, "overwrite", fsys.Files(), want)
	})
	t.Run("of others", func(t *testing.T) {
		// Names that builds use too, with what another program wrote: never theirs to change.
		built, app := c.build(t), []byte(`{"name": "Holiday planner", "icons": []}`)
		for _, name := range []string{"manifest.json", "tokenizer.json", "plan.json", "run.json", "rejects.jsonl",
			"train-00007.arrow", "build.lock"} {
			for _, fsys := range []*shardtest.FS{shardtest.New(), built} {
				if _, isBuilt := built.Files()["/d/"+name]; isBuilt && fsys == built {
					continue
				}
				fsys.Put("/d/"+name, app)
				before := fsys.Files()
				for _, overwrite := range []bool{false, true} {
					err := open(fsys, func(o *dataset.BuilderOptions) { o.Overwrite = overwrite })
					if !errors.Is(err, dataset.ErrForeign) && (overwrite || fsys != built || !errors.Is(err, dataset.ErrFinished)) {
						t.Errorf("%s, overwrite %t: %v", name, overwrite, err)
					} else if errors.Is(err, dataset.ErrForeign) && !strings.Contains(err.Error(), name) {
						t.Errorf("%s is not named: %v", name, err)
					}
					mustEqual(t, name, fsys.Files(), before)
				}
				delete(before, "/d/"+name)
				fsys.Remove("/d/" + name)
			}
		}
	})
	t.Run("overwritten and stopped", func(t *testing.T) {
		// What a claim has not removed yet is no dataset, and the next build removes it.
		fsys := wide.build(t)
		fsys.Put("/d/held-out.bin", []byte("of the old build"))
		before := fsys.Files()
		delete(before, "/d/manifest.json")
		if err := open(fsys, func(o *dataset.BuilderOptions) { o.Overwrite = true }); err == nil {
			t.Error("rejects.jsonl, which the manifest does not list, was removed")
		}
		fsys.Remove("/d/held-out.bin")
		if err := open(fsys, func(o *dataset.BuilderOptions) { o.Overwrite = true }); err != nil {
			t.Fatal(err)
		}
		for name, data := range before {
			fsys.Put(name, data)
		}
		if err := c.run(fsys, "/d", never); err != nil {
			t.Fatal(err)
		}
		mustEqual(t, "after a claim", fsys.Files(), c.build(t).Files())
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
		for i, change := range []func(*dataset.BuilderOptions){
			func(o *dataset.BuilderOptions) { o.Schema.VocabSize = 0 },
			func(o *dataset.BuilderOptions) { o.ShardBytes = 100 },
			func(o *dataset.BuilderOptions) { o.MaxRowTokens = -1 },
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
	built := wide.build(t)
	for k := 1; ; k += effort.Of(3, 1, 1) {
		fsys := built.CrashImage(shardtest.LoseNone, 0)
		fsys.CutAt(fsys.Ops() + k)
		o := plain.options()
		o.Overwrite = true
		b, _, err := dataset.OpenBuilder(fsys, "/d", o)
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
			b, _, err := dataset.OpenBuilder(image, "/d", o)
			if err != nil {
				t.Fatalf("cut at %d: %v", k, err)
			}
			b.Close()
		}
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
		var damaged *shardfile.FileError
		if err := c.run(fsys, "/d", never); !errors.As(err, &damaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if fsys.OpenFiles() != 0 {
			t.Errorf("%s: files left open", name)
		}
	}
}

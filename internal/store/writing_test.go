package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/remote/remotetest"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

const rows = 600 // of each build

var (
	errStopped = errors.New("stopped")
	madeWith   = shard.TokenizerInfo{Name: "test", Fingerprint: "f", VocabSize: 50_000}
)

// writing is a bucket, and a build that several machines write to it.
type writing struct {
	t       *testing.T
	dir     string // of machines
	uri     string
	now     time.Time
	objects *remote.Store
	o       dataset.BuilderOptions
	begun   int // the row from which the last builder continued
	every   int // rows between two checkpoints
	server  *remotetest.Server
}

// as returns a writing of other rows, with settings that say so, into the same folder.
func (w *writing) as(settings string) *writing {
	other := *w
	other.o.Settings = []byte(settings)
	return &other
}

// adding returns a writing that adds to the dataset.
func (w *writing) adding(settings string) *writing {
	other := w.as(settings)
	other.o.Append, other.o.FirstDocument = true, rows
	return other
}

// eachWriting runs a test with each kind of bucket.
func eachWriting(t *testing.T, test func(t *testing.T, w *writing)) {
	t.Setenv("XDG_CACHE_HOME", "")
	remotetest.EachMemoryBucket(t, func(t *testing.T, srv *remotetest.Server, uri string) {
		w := &writing{t: t, server: srv, every: 50, dir: t.TempDir(), uri: uri + "/out", now: time.Unix(1e9, 0),
			objects: remote.NewStore(remote.Options{}),
			o: dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 50_000}, ShardBytes: 16 << 10,
				Settings: []byte(`{"a":1}`)}}
		defer w.objects.Close()
		test(t, w)
	})
}

// write continues a dataset up to a row, and finishes it after the last. meanwhile, if not nil, is called
// between the last two checkpoints.
func (w *writing) write(fsys shardfile.FS, dir string, to int, meanwhile func()) (err error) {
	b, checkpoint, err := dataset.OpenBuilder(fsys, dir, w.o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if w.begun = 0; checkpoint != nil {
		if w.begun, err = strconv.Atoi(string(checkpoint.Cursor)); err != nil {
			return err
		}
	}
	for at := w.begun; at < to; at++ {
		ids := make([]uint32, 40)
		for i := range ids {
			ids[i] = uint32((at*7919 + i*31 + w.o.Part.Number + len(w.o.Settings)) % 50_000)
		}
		document := int64(at+w.o.Part.Number*rows) + w.o.FirstDocument
		if err := b.Row("train", &dataset.Example{InputIDs: ids, Document: document}); err != nil {
			return err
		}
		if at%w.every == w.every/2-1 {
			if at+w.every > to && meanwhile != nil {
				meanwhile()
			}
			if err := b.Save([]byte(strconv.Itoa(at + 1))); err != nil {
				return err
			}
		}
	}
	if to < rows {
		return errStopped
	}
	if !w.o.Append && w.o.Part.Of == 0 {
		if err := b.File(shardfile.RejectsName, strings.NewReader("{}\n")); err != nil {
			return err
		}
	}
	_, err = b.Finish(dataset.Provenance{Tokenizer: madeWith, State: []byte("{}")})
	return err
}

// build is write on a machine, into the bucket.
func (w *writing) build(machine string, to int, meanwhile func()) error {
	return w.run(machine, func(fsys shardfile.FS, dir string) error { return w.write(fsys, dir, to, meanwhile) })
}

// finish is build up to the last row; that it is built already is no error, as for a command.
func (w *writing) finish(machine string) error {
	return w.run(machine, func(fsys shardfile.FS, dir string) error {
		if err := w.write(fsys, dir, rows, nil); !errors.Is(err, dataset.ErrFinished) {
			return err
		}
		return nil
	})
}

func (w *writing) run(machine string, run func(fsys shardfile.FS, dir string) error) error {
	os.Setenv("XDG_CACHE_HOME", filepath.Join(w.dir, machine)) // eachWriting restores it
	return Build(w.t.Context(), Target{disk: unsynced{shardfile.OS()}, URI: w.uri, Part: w.o.Part, Plan: w.o.Plan, Adds: w.o.Append,
		Overwrite: w.o.Overwrite, Clock: func() time.Time {
			w.now = w.now.Add(checkpointInterval)
			return w.now
		}}, run)
}

// unsynced is a file system that no power cut meets.
type unsynced struct{ shardfile.FS }

type unsyncedFile struct{ shardfile.File }

func (unsyncedFile) Sync() error      { return nil }
func (unsynced) SyncDir(string) error { return nil }
func (u unsynced) OpenFile(name string, flag int) (shardfile.File, error) {
	f, err := u.FS.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

// compare compares the bucket's folder with a local one, except for an object that may be there.
func (w *writing) compare(dir string, except ...string) {
	w.t.Helper()
	want, got := map[string]string{}, map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		want[e.Name()] = string(data)
	}
	if err := w.objects.List(w.t.Context(), w.uri, func(name string, o remote.Object) error {
		data, err := w.objects.ReadAll(w.t.Context(), o, 1<<20)
		if _, wanted := want[name]; wanted || !slices.Contains(except, name) {
			got[name] = string(data)
		}
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	if !maps.Equal(want, got) {
		w.t.Errorf("in the bucket %v, want %v with equal bytes", slices.Sorted(maps.Keys(got)),
			slices.Sorted(maps.Keys(want)))
	}
}

func (w *writing) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// A whole build that stops on one machine is resumed on another, ends with the bytes of a local one, and
// leaves nothing behind.
func TestBuildMoves(t *testing.T) {
	eachWriting(t, func(t *testing.T, w *writing) {
		local := filepath.Join(w.dir, "local")
		w.must(w.write(unsynced{shardfile.OS()}, local, rows, nil))
		if err := w.build("a", 340, nil); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		w.must(w.build("b", rows, nil))
		if w.begun != 325 {
			t.Errorf("resumed at row %d", w.begun)
		}
		w.compare(local)
		if err := w.build("a", rows, nil); !errors.Is(err, dataset.ErrFinished) || !strings.Contains(err.Error(), w.uri) {
			t.Errorf("again: %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, "b", "dsload", "out", "*")); len(left) > 0 {
			t.Errorf("left in the scratch folder: %v", left)
		}
	})
}

// A machine stops at its next checkpoint once another one has taken the build over.
func TestBuildTakenOver(t *testing.T) {
	eachWriting(t, func(t *testing.T, w *writing) {
		err := w.build("a", 340, func() {
			if err := w.build("b", 390, nil); !errors.Is(err, errStopped) {
				t.Error(err)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "has taken the build over") {
			t.Errorf("overtaken: %v", err)
		}
	})
}

// The parts of a plan, one of which moves to another machine, are merged in the bucket as in a folder.
func TestPartsMove(t *testing.T) {
	eachWriting(t, func(t *testing.T, w *writing) {
		local := filepath.Join(w.dir, "local")
		w.o.Plan = "seal"
		for number := range 2 {
			w.o.Part = shardfile.Part{Number: number, Of: 2}
			w.must(w.write(unsynced{shardfile.OS()}, local, rows, nil))
			if err := w.build("a", 340, nil); !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			w.must(w.build("b", rows, nil))
			if w.begun != 325 {
				t.Errorf("part %d was resumed at row %d", number, w.begun)
			}
		}
		if err := w.build("a", 340, nil); !errors.Is(err, dataset.ErrFinished) {
			t.Errorf("a finished part: %v", err)
		}
		w.must(w.merge(unsynced{shardfile.OS()}, local))
		w.must(Merge(t.Context(), w.uri, w.merge))
		w.compare(local)
		w.must(Merge(t.Context(), w.uri+"/", w.merge)) // it is merged already
	})
}

func (w *writing) merge(fsys shardfile.FS, dir string) error { return w.mergeParts(fsys, dir, 2) }

func (w *writing) mergeParts(fsys shardfile.FS, dir string, n int) (err error) {
	m, err := dataset.OpenMerger(w.t.Context(), fsys, dir, dataset.MergeOptions{Partitions: n, Plan: w.o.Plan,
		Settings: w.o.Settings, PartSettings: func(int) (json.RawMessage, error) { return w.o.Settings, nil }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if m.Merged() == nil {
		if _, err := m.Finish(func([]string) (dataset.Provenance, error) {
			return dataset.Provenance{Tokenizer: madeWith}, nil
		}, map[string]io.Reader{}); err != nil {
			return fmt.Errorf("finish: %w", err)
		}
	}
	_, err = m.Tidy()
	return err
}

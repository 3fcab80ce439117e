package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// stackFS notes for each write of a shard whether Row waits for it.
type stackFS struct {
	shardfile.FS
	waited, beside int
}

type stackFile struct {
	shardfile.File
	fs *stackFS
}

func (f *stackFS) OpenFile(name string, flag int) (shardfile.File, error) {
	file, err := f.FS.OpenFile(name, flag)
	if err != nil || filepath.Ext(name) != ".tmp" || !bytes.Contains([]byte(name), []byte("train")) {
		return file, err
	}
	return stackFile{file, f}, nil
}

func (f stackFile) WriteAt(p []byte, at int64) (int, error) {
	if bytes.Contains(debug.Stack(), []byte("dataset.(*Builder).Row(")) {
		f.fs.waited++
	} else {
		f.fs.beside++
	}
	return f.File.WriteAt(p, at)
}

// TestBatchesOfOneProcessor: with one processor, or where others keep all of them busy, a batch is written by Row, while it
// is in the cache, since a goroutine would run beside nothing; else it is written beside Row. The bytes are the same.
func TestBatchesOfOneProcessor(t *testing.T) {
	build := func(processors int, crowded bool) (*stackFS, []byte) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		fs, dir := &stackFS{FS: shardfile.OS()}, t.TempDir()
		b, _, err := OpenBuilder(fs, dir, BuilderOptions{Schema: shard.Schema{VocabSize: 300}, Crowded: crowded})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		ids := make([]uint32, 400)
		for i := range int64(20_000) {
			ids[i%400] = uint32(i % 300)
			if err := b.Row("train", &Example{InputIDs: ids, Document: i}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.settle(); err != nil {
			t.Fatal(err)
		}
		before := *fs
		if _, err := b.Finish(Provenance{}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "train-00000.arrow"))
		if err != nil {
			t.Fatal(err)
		}
		return &before, data
	}
	one, first := build(1, false)
	two, second := build(2, false)
	crowd, third := build(2, true)
	if one.waited == 0 || one.beside > 0 || two.waited > 0 || two.beside == 0 {
		t.Errorf("writes that Row waited for, and others: %d and %d with one processor, %d and %d with two",
			one.waited, one.beside, two.waited, two.beside)
	}
	if crowd.waited == 0 || crowd.beside > 0 {
		t.Errorf("%d writes that Row waited for where all processors are busy, %d others", crowd.waited, crowd.beside)
	}
	if !bytes.Equal(first, second) || !bytes.Equal(first, third) {
		t.Error("a shard of one processor, or where all are busy, has other bytes")
	}
}

package shard_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// heldFS is a file system on which the sync of a shard waits until it is let go, and then returns err.
type heldFS struct {
	*shardtest.FS
	letGo chan struct{}
	err   error
	syncs atomic.Int64 // of shards, begun
}

type heldFile struct {
	shardfile.File
	fs *heldFS
}

func (f *heldFS) OpenFile(name string, flag int) (shardfile.File, error) {
	file, err := f.FS.OpenFile(name, flag)
	if err != nil || !strings.Contains(name, "train-") || flag&os.O_RDWR == 0 {
		return file, err
	}
	return heldFile{file, f}, nil
}

func (f heldFile) Sync() error {
	f.fs.syncs.Add(1)
	<-f.fs.letGo
	if f.fs.err != nil {
		return f.fs.err
	}
	return f.File.Sync()
}

// Rename lets the sync go once run.json has its name.
func (f *heldFS) Rename(from, to string) error {
	if strings.HasSuffix(to, shardfile.RunName) {
		close(f.letGo)
	}
	return f.FS.Rename(from, to)
}

func (f *heldFS) has(name string) bool { _, ok := f.Files()["/d/"+name]; return ok }

func openHeld(t *testing.T, err error, shardBytes int64) (*heldFS, *dataset.Builder) {
	t.Helper()
	f := &heldFS{FS: shardtest.New(), letGo: make(chan struct{}), err: err}
	b, _, openErr := dataset.OpenBuilder(f, "/d", dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 300},
		ShardBytes: shardBytes})
	if openErr != nil {
		t.Fatal(openErr)
	}
	return f, b
}

// appendUntil appends rows of n tokens until done reports true.
func appendUntil(t *testing.T, b *dataset.Builder, n int, done func() bool) error {
	t.Helper()
	ids := make([]uint32, n)
	for i := range 100_000 {
		if done() {
			return nil
		}
		if err := b.Row("train", &dataset.Example{InputIDs: ids, Document: int64(i)}); err != nil {
			return err
		}
	}
	t.Fatal("it is not done after 100,000 rows")
	return nil
}

// A builder continues while a shard that it ended is synced, gives the shard its name no earlier, and takes no
// checkpoint before that.
func TestShardIsSyncedInBackground(t *testing.T) {
	f, b := openHeld(t, nil, 4<<10)
	if err := appendUntil(t, b, 20, func() bool { n, _, _ := b.Written("train"); return n == 2 }); err != nil {
		t.Fatal(err)
	}
	if !f.has("train-00000.arrow.tmp") || f.has("train-00000.arrow") || !f.has("train-00001.arrow.tmp") {
		t.Fatal("the first shard has its name before it is synced, or the second has not begun")
	}
	close(f.letGo)
	if err := b.Save([]byte("c")); err != nil {
		t.Fatal(err)
	}
	if f.has("train-00000.arrow.tmp") || !f.has("train-00000.arrow") {
		t.Error("the first shard has no name after a checkpoint")
	}
	if _, err := b.Finish(dataset.Provenance{}); err != nil {
		t.Fatal(err)
	}
	if n := f.OpenFiles(); n != 0 {
		t.Errorf("%d files left open", n)
	}
}

// Finish writes run.json while the last shard is synced, and the manifest once the shard has its name. In the other
// order nothing would let the sync go, which synctest reports.
func TestFinishSyncsInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := openHeld(t, nil, 64<<20)
		if err := b.Row("train", &dataset.Example{InputIDs: []uint32{1, 2}}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Finish(dataset.Provenance{Run: map[string]int{"seconds": 1}}); err != nil {
			t.Fatal(err)
		}
		if !f.has(shardfile.RunName) || !f.has("train-00000.arrow") || !f.has(shardfile.ManifestName) {
			t.Error("a file of the dataset is missing")
		}
		if n := f.syncs.Load(); n != 1 {
			t.Errorf("%d syncs", n)
		}
	})
}

// A sync in the background that fails ends the build: no later checkpoint, no name for the shard, and the state
// is the one before.
func TestSyncInBackgroundFails(t *testing.T) {
	f, b := openHeld(t, syscall.EIO, 4<<10)
	close(f.letGo)
	err := appendUntil(t, b, 20, func() bool { n, _, _ := b.Written("train"); return n == 2 })
	if err == nil {
		err = b.Save([]byte("c"))
	}
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "train-00000.arrow.tmp") {
		t.Fatalf("the error is %v", err)
	}
	if again := b.Save([]byte("d")); !errors.Is(again, syscall.EIO) {
		t.Errorf("a later checkpoint: %v", again)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if f.has("train-00000.arrow") {
		t.Error("a shard that is not durable has its name")
	}
	if n := f.OpenFiles(); n != 0 {
		t.Errorf("%d files left open", n)
	}
	if _, c, err := dataset.OpenBuilder(f.FS.CrashImage(shardtest.LoseAll, 1), "/d",
		dataset.BuilderOptions{Schema: shard.Schema{VocabSize: 300}, ShardBytes: 4 << 10}); err != nil || c != nil {
		t.Errorf("afterwards there is checkpoint %v, error %v", c, err)
	}
}

// SyncAhead leaves a checkpoint little to sync, and nothing where little was written.
func TestSyncAhead(t *testing.T) {
	for _, fail := range []error{nil, syscall.EIO} {
		f, b := openHeld(t, fail, 64<<20)
		if !b.SyncAhead() {
			t.Error("there is something to sync before the first row")
		}
		rows := 0
		if err := appendUntil(t, b, 1000, func() bool { rows++; return rows > 2000 }); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if b.SyncAhead() {
				t.Error("the sync is done before it was let go")
			}
		}
		close(f.letGo)
		for !b.SyncAhead() {
			runtime.Gosched()
		}
		if n := f.syncs.Load(); n != 1 {
			t.Errorf("%d syncs", n)
		}
		if err := b.Save([]byte("c")); !errors.Is(err, fail) {
			t.Errorf("the checkpoint returns %v, want %v", err, fail)
		}
		if fail == nil && !b.SyncAhead() {
			t.Error("there is something to sync after a checkpoint")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

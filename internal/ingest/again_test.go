package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// builtWhole returns the files of a build that nothing stopped, and how many operations of the file
// system it took.
func builtWhole(t testing.TB, o option.Options) (want map[string][]byte, ops int) {
	t.Helper()
	fsys := shardtest.New()
	o.FS = fsys
	mustBuild(t, o)
	return files(fsys), fsys.Ops()
}

// wantSameWithAnyResources builds with other workers, memory and checkpoints.
func wantSameWithAnyResources(t testing.TB, base option.Options, want map[string][]byte) {
	t.Helper()
	for name, change := range map[string]func(*option.Options){
		"one worker":       func(o *option.Options) { o.Workers = 1 },
		"five workers":     func(o *option.Options) { o.Workers = 5 },
		"little memory":    func(o *option.Options) { o.Workers, o.Memory = 2, 64<<20 },
		"many checkpoints": func(o *option.Options) { o.CheckpointEvery, o.CheckpointInterval = 1, 1 },
	} {
		o := base
		change(&o)
		got, _ := builtWhole(t, o)
		wantSame(t, name, want, got)
	}
}

// wantSameWhenInterrupted interrupts a build again and again, each time after at most the given number
// of synced folders.
func wantSameWhenInterrupted(t testing.TB, base option.Options, after int, want map[string][]byte) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(4, 4))
	fsys := shardtest.New()
	interrupts := 0
	for {
		ctx, cancel := context.WithCancel(context.Background())
		o := base
		o.FS = &cancelling{FS: fsys, after: int64(1 + rnd.IntN(after)), cancel: cancel}
		_, err := Run(ctx, o)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		if interrupts++; interrupts > 1000 {
			t.Fatal("the build makes no progress")
		}
	}
	if interrupts == 0 {
		t.Error("nothing was interrupted")
	}
	t.Logf("%d interrupts", interrupts)
	wantSame(t, "resumed", want, files(fsys))
}

// wantSameAfterCrash stops a build at operation k of the file system, loses what was not synced, or
// some or nothing of it, and continues. It returns false if the build ended before: checkpoints depend
// on time, so a run may need fewer operations than another.
func wantSameAfterCrash(t testing.TB, o option.Options, k int, want map[string][]byte) bool {
	t.Helper()
	fsys := shardtest.New()
	fsys.CutAt(k)
	o.FS = fsys
	if _, err := Run(context.Background(), o); err == nil {
		return false
	}
	losses := []shardtest.Loss{shardtest.LoseAll, shardtest.LoseSome, shardtest.LoseNone}
	after := fsys.CrashImage(losses[k%len(losses)], uint64(k))
	o.FS = after
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatalf("after a crash at operation %d: %v", k, err)
	}
	wantSame(t, fmt.Sprintf("crash at operation %d", k), want, files(after))
	if n := after.OpenFiles(); n > 0 {
		t.Fatalf("after a crash at operation %d: %d files are open", k, n)
	}
	return true
}

// readRows returns the rows of a split, none if there is no such split.
func readRows(t testing.TB, fsys shardfile.FS, dir, split string) (rows []shard.Row) {
	t.Helper()
	d, err := shard.OpenFS(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Split(split)
	if errors.Is(err, shard.ErrNoSplit) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.NumRows() {
		var row shard.Row
		if err := r.ReadRow(i, &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

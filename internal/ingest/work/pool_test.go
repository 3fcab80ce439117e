package work

import (
	"context"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest/job"
	"golang.org/x/sync/errgroup"
)

// TestPool: whichever goroutine takes a parcel, parcels that come one after another meet one worker.
func TestPool(t *testing.T) {
	const workers = 3
	var pool Pool
	all := map[*Worker]bool{}
	for range workers {
		w, _ := newWorker(t)
		all[w] = true
		pool.Put(w)
	}
	parcels := make(chan *job.Parcel)
	var waits job.Waiting
	group, ctx := errgroup.WithContext(context.Background())
	for range workers {
		group.Go(func() error { return pool.Run(ctx, parcels, &waits) })
	}
	for range 10 {
		j := new(job.Job)
		d := j.AddDocument(0)
		d.Decoded, d.First, d.Last = true, true, true
		j.Raw = append(j.Raw, "some words"...)
		d.Raw.End = len(j.Raw)
		p := &job.Parcel{Jobs: []*job.Job{j}, Done: make(chan struct{}, 1)}
		parcels <- p
		select {
		case <-p.Done:
		case <-time.After(time.Minute):
			t.Fatal("no worker is through after a minute")
		}
		if len(j.IDs) == 0 {
			t.Fatal("no ids")
		}
	}
	close(parcels)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	used := 0
	for w := range all {
		if w.most > 0 {
			used++
		}
	}
	if used != 1 || len(pool.idle) != workers {
		t.Errorf("%d workers are used and %d are idle, want 1 and %d", used, len(pool.idle), workers)
	}
}

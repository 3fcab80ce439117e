package work

import (
	"context"
	"sync"
	"time"

	"github.com/dsload/dsload/internal/ingest/job"
)

// Pool holds the workers of a build that have nothing to do. The last one back is the first to go: its caches are the
// warmest, and workers that a build has no use for stay untouched. Channels alone would give each worker its turn.
type Pool struct {
	mu   sync.Mutex
	idle []*Worker
}

// Put adds a worker.
func (p *Pool) Put(w *Worker) {
	p.mu.Lock()
	p.idle = append(p.idle, w)
	p.mu.Unlock()
}

// take removes the worker that was put last. There must be one.
func (p *Pool) take() *Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	w := p.idle[last]
	p.idle = p.idle[:last]
	return w
}

// Run is the second stage: it takes jobs in any order and signals each when it is done. What
// is wrong with a record is noted in its document, for the flusher to judge in order. It may run as often at once as
// there are workers.
func (p *Pool) Run(ctx context.Context, parcels <-chan *job.Parcel, waits *job.Waiting) error {
	for {
		idle := time.Now()
		select {
		case parcel, ok := <-parcels:
			waits.Since(idle)
			if !ok {
				return nil
			}
			w, stopped := p.take(), false
			for _, j := range parcel.Jobs {
				stopped = stopped || !w.Do(j)
				j.Stopped = stopped
				w.Trim()
			}
			p.Put(w)
			parcel.Done <- struct{}{}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

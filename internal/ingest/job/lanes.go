package job

import (
	"context"
	"sync/atomic"
	"time"
)

// Lanes are the ways on which jobs change hands. Every parcel goes to both: in order to the flusher, in any
// order to the workers.
type Lanes struct {
	Ordered, Work chan *Parcel
	idle          chan *Job // through the pipeline, for the reader to fill again
}

// NewLanes returns lanes on which the given numbers of parcels and of idle jobs may wait.
func NewLanes(parcels int, jobs int64) Lanes {
	return Lanes{Ordered: make(chan *Parcel, parcels), Work: make(chan *Parcel, parcels), idle: make(chan *Job, jobs)}
}

// Close ends the lanes after the last parcel.
func (l *Lanes) Close() {
	close(l.Ordered)
	close(l.Work)
}

// Send hands jobs to the flusher and to a worker, or releases their leases where ctx ended.
func (l *Lanes) Send(ctx context.Context, jobs []*Job) error {
	p := &Parcel{Jobs: jobs, Done: make(chan struct{}, 1)}
	for _, to := range []chan *Parcel{l.Ordered, l.Work} {
		select {
		case to <- p:
		case <-ctx.Done():
			Release(p.Jobs)
			return ctx.Err()
		}
	}
	return nil
}

// Empty returns a job without records.
func (l *Lanes) Empty() *Job {
	select {
	case j := <-l.idle:
		return j
	default:
		return &Job{Raw: make([]byte, 0, usualRawBytes)}
	}
}

// Recycle returns a job that the flusher is through with, and releases its lease.
func (l *Lanes) Recycle(j *Job) {
	lease := j.Lease
	j.reset()
	select {
	case l.idle <- j:
	default:
	}
	lease.Release()
}

// Release gives back the leases of jobs that the flusher does not take.
func Release(jobs []*Job) {
	for _, j := range jobs {
		j.Lease.Release()
	}
}

// ReleaseUnfinished gives back the leases of the jobs that the flusher did not take because a budget
// ended the phase. Call it after all stages have ended.
func (l *Lanes) ReleaseUnfinished() {
	for p := range l.Ordered {
		Release(p.Jobs)
	}
}

// Waiting is how long a stage has waited for the others. Safe for concurrent use.
type Waiting struct{ total atomic.Int64 }

// Since adds the time since start.
func (w *Waiting) Since(start time.Time) { w.total.Add(int64(time.Since(start))) }

// Time returns the sum, over the stage's goroutines.
func (w *Waiting) Time() time.Duration { return time.Duration(w.total.Load()) }

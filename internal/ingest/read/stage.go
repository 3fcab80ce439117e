// Package read is the first stage of a build: it frames records into jobs, after a command has answered them where
// there is one.
package read

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/units"
)

// ErrMemory is the cause where a record needs more memory than the cap leaves.
var ErrMemory = fault.New(fault.Limit, "memory cap reached")

// Records are a source.Reader, or what a command made of its records.
type Records interface {
	Next(dst []byte, rec *source.Record) ([]byte, error)
	Note() *source.Position
	Noted() source.Position
	Progress() (read, total int64)
}

// Borders are what a plan notes while the sources are read.
type Borders interface {
	// Inside returns the border after a record, between the one before a record's input; nil for none.
	Inside(p *source.Position) *job.Mark
	Between(input int, ordinal int64) *job.Mark
}

// noBorders are those of a stage whose sources are not cut.
type noBorders struct{}

func (noBorders) Inside(*source.Position) *job.Mark { return nil }
func (noBorders) Between(int, int64) *job.Mark      { return nil }

// A Stage is the first stage: it frames records into jobs, and hands each job to the workers and, in the same
// order, to the flusher. The first record of a job is staged, so that the job's lease is known before its buffers
// hold anything. The others are read in place.
type Stage struct {
	Records
	Mapping    *Mapping // the same records, where they go through a command
	Borders    Borders
	Lanes      *job.Lanes
	Ledger     *budget.Ledger
	Lease      func(first int) int64 // a job's lease, given the bytes of its first record
	MaxRecords int                   // most records in a job
	URI        func(input int) string
	Waiting    *job.Waiting

	record source.Record // framed, waiting for a job
	staged []byte        // its bytes
	err    error         // the last Next's
	jobs   []*job.Job    // waiting to be sent
	runner job.Runner    // the Records, where nothing but their order matters of each
	most   int           // documents of a job so far
}

// Run reads until the sources end or the build stops, at the end of a job where wanted ends. An error of the
// sources does not end the other stages: everything that was read before it is still written.
func (r *Stage) Run(ctx, wanted context.Context) error {
	defer r.Lanes.Close()
	if r.Borders == nil {
		r.Borders = noBorders{}
		r.runner, _ = r.Records.(job.Runner)
	}
	for r.stage(); r.err == nil && wanted.Err() == nil; {
		j, err := r.newJob(ctx)
		if err != nil {
			return r.leaseError(err)
		}
		r.fill(j)
		j.Read, _ = r.Progress()
		j.Last = r.Ended()
		if r.jobs = append(r.jobs, j); len(r.jobs) == job.ParcelJobs {
			if err := r.send(ctx); err != nil {
				return err
			}
		}
	}
	return r.send(ctx)
}

// Ended reports whether the sources were read to their end.
func (r *Stage) Ended() bool { return errors.Is(r.err, io.EOF) }

// Failed returns the error of the sources that ended the stage.
func (r *Stage) Failed() error {
	if r.Ended() {
		return nil
	}
	return r.err
}

// stage reads a record that begins a job.
func (r *Stage) stage() {
	if cap(r.staged) > 2*job.PieceBytes {
		r.staged = nil // grown for one long record
	}
	r.staged, r.err = r.Next(r.staged[:0], &r.record)
}

// One returns a job of the next record alone, under its lease, for who runs no other stages and recycles each job
// before the next.
func (r *Stage) One(ctx context.Context) (*job.Job, error) {
	if r.stage(); r.err != nil {
		return nil, r.err
	}
	j, err := r.newJob(ctx)
	if err != nil {
		return nil, r.leaseError(err)
	}
	r.begin(j)
	r.Mapping.Attach(j, &j.Documents[0])
	return j, nil
}

// begin moves the staged record into a job.
func (r *Stage) begin(j *job.Job) {
	j.Raw = append(j.Raw, r.staged...)
	*j.AddDocument(r.most) = job.Document{Record: r.record, Raw: job.Span{End: len(j.Raw)}}
}

// fill moves the staged record into a job, reads as many into it as may follow, and stages the next one.
func (r *Stage) fill(j *job.Job) {
	r.begin(j)
	for runs := r.runner != nil; ; {
		r.Mapping.Attach(j, &j.Documents[len(j.Documents)-1])
		if runs && len(j.Documents) < r.MaxRecords {
			runs = j.AddRun(r.runner, r.MaxRecords, r.most)
		}
		j.Mark = r.Borders.Inside(r.Note())
		full := j.Mark != nil || len(j.Raw) >= job.TextBytes || len(j.Documents) == r.MaxRecords
		if full {
			r.stage()
		}
		if full && r.err == nil && j.Mark == nil {
			j.Mark = r.Borders.Between(r.record.Input, r.record.Ordinal)
		}
		if full || !r.next(j) {
			j.Next = r.Noted()
			r.most = max(r.most, len(j.Documents))
			return
		}
	}
}

// next reads one more record into a job. It returns false where there is none for this job: the sources ended, or
// the record was staged since it begins a partition, or is longer than a piece and travels alone, under a lease of
// its own.
func (r *Stage) next(j *job.Job) bool {
	start := len(j.Raw)
	d := j.AddDocument(r.most)
	j.Raw, r.err = r.Next(j.Raw, &d.Record)
	d.Raw = job.Span{Start: start, End: len(j.Raw)}
	if r.err == nil {
		if j.Mark = r.Borders.Between(d.Input, d.Ordinal); j.Mark == nil && len(j.Raw)-start <= job.PieceBytes {
			return true
		}
		r.record, r.staged = d.Record, append(r.staged[:0], j.Raw[start:]...)
	}
	*d = job.Document{}
	j.Documents, j.Raw = j.Documents[:len(j.Documents)-1], j.Raw[:start]
	if cap(j.Raw) > job.MaxRawBytes {
		j.Raw = bytes.Clone(j.Raw)
	}
	return false
}

// newJob leases a job for the staged record and those after it: the usual lease, or as much as that one needs. It
// waits for a lease only once the jobs in hand were sent, which hold leases themselves.
func (r *Stage) newJob(ctx context.Context) (*job.Job, error) {
	start, need := time.Now(), r.Lease(len(r.staged))
	lease, ok := r.Ledger.TryAcquire(need)
	if !ok {
		if err := r.send(ctx); err != nil {
			return nil, err
		}
		var err error
		lease, err = r.Ledger.Acquire(ctx, need)
		r.Waiting.Since(start)
		if err != nil {
			return nil, err
		}
	}
	j := r.Lanes.Empty()
	j.Lease = lease
	return j, nil
}

func (r *Stage) send(ctx context.Context) error {
	if len(r.jobs) == 0 {
		return nil
	}
	jobs := r.jobs
	r.jobs = make([]*job.Job, 0, job.ParcelJobs)
	return r.Lanes.Send(ctx, jobs)
}

// leaseError names the record that is too large for the cap.
func (r *Stage) leaseError(err error) error {
	var tooLarge *budget.TooLargeError
	if !errors.As(err, &tooLarge) {
		return err
	}
	at := ""
	if r.record.Offset >= 0 { // columns have none
		at = fmt.Sprintf(", at byte %d", r.record.Offset)
	}
	return fault.Errorf("tokenize row %d of %s%s: its %v need %v of memory where {memory} leaves "+
		"%v; raise {memory}: %w",
		r.record.Row, r.URI(r.record.Input), at, units.Size(len(r.staged)), units.Size(tooLarge.Wanted),
		units.Size(tooLarge.Limit), ErrMemory)
}

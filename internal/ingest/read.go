package ingest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/dsload/dsload/internal/ingest/source"
)

// records are a source.Reader, or what a command made of its records.
type records interface {
	Next(dst []byte, rec *source.Record) ([]byte, error)
	Position() source.Position
	Progress() (read, total int64)
}

// read is the first stage: it frames records into jobs until the sources end or the build stops,
// and hands each job to the workers and, in the same order, to the flusher. What it reads goes
// through one staging buffer, so that a job's lease is known before the job's buffers hold
// anything.
//
// It stops at the end of a job where wanted ends. An error of the sources is kept for the flusher:
// everything that was read before it is still written.
func (b *build) read(ctx, wanted context.Context, reader records) error {
	defer close(b.ordered)
	defer close(b.work)
	var (
		record source.Record // framed, waiting for a job
		staged []byte        // its bytes
		err    error
	)
	next := func() {
		if cap(staged) > 2*pieceBytes {
			staged = nil // grown for one long record
		}
		staged, err = reader.Next(staged[:0], &record)
	}
	for next(); err == nil && wanted.Err() == nil; {
		j, leaseErr := b.newJob(ctx, int64(len(staged)))
		if leaseErr != nil {
			return b.leaseError(leaseErr, record, len(staged))
		}
		for {
			start := len(j.raw)
			j.raw = append(j.raw, staged...)
			j.documents = append(j.documents, document{Record: record, raw: span{start, len(j.raw)}})
			b.mapping.note(j, &j.documents[len(j.documents)-1])
			j.next = reader.Position()
			j.mark = b.target.inside(&j.next)
			next()
			if err == nil && j.mark == nil {
				j.mark = b.target.between(record.Input, record.Ordinal)
			}
			if err != nil || j.mark != nil || len(j.raw) >= jobTextBytes || len(j.documents) == b.plan.maxRecords ||
				len(staged) > pieceBytes {
				break // a record longer than a piece travels alone, under a lease of its own
			}
		}
		j.read, _ = reader.Progress()
		j.last = errors.Is(err, io.EOF)
		if err := b.send(ctx, j); err != nil {
			j.lease.Release()
			return err
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.readErr = err // read by the flusher after ordered is closed
	}
	b.ended = errors.Is(err, io.EOF)
	return nil
}

// newJob leases a job for records that begin with one of rawBytes: the usual lease, or as much as
// that one needs.
func (b *build) newJob(ctx context.Context, rawBytes int64) (*job, error) {
	start := time.Now()
	lease, err := b.ledger.Acquire(ctx,
		max(b.plan.jobLease, longRecordLease(rawBytes, b.phases[0].formatter, b.chat)))
	waited(&b.waits.reader, start)
	if err != nil {
		return nil, err
	}
	var j *job
	select {
	case j = <-b.idle:
	default:
		j = &job{done: make(chan struct{}, 1)}
	}
	j.lease = lease
	return j, nil
}

// send hands a job to the flusher and to a worker. Both channels hold as many jobs as leases can
// exist, so it never waits for long.
func (b *build) send(ctx context.Context, j *job) error {
	for _, to := range []chan *job{b.ordered, b.work} {
		select {
		case to <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// releaseUnfinished gives back the leases of the jobs that the flusher did not take because a budget
// ended the phase. Call it after all stages have ended.
func (b *build) releaseUnfinished() {
	for j := range b.ordered {
		j.lease.Release()
	}
}

// recycle returns a job that the flusher is through with.
func (b *build) recycle(j *job) {
	lease := j.lease
	j.reset()
	select {
	case b.idle <- j:
	default:
	}
	lease.Release()
}

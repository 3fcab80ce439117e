package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/dsload/dsload/internal/ingest/source"
)

// records are a source.Reader, or what a command made of its records.
type records interface {
	Next(dst []byte, rec *source.Record) ([]byte, error)
	Note() *source.Position
	Noted() source.Position
	Progress() (read, total int64)
}

// read is the first stage: it frames records into jobs until the sources end or the build stops,
// and hands each job to the workers and, in the same order, to the flusher.
//
// It stops at the end of a job where wanted ends. An error of the sources is kept for the flusher:
// everything that was read before it is still written.
func (b *build) read(ctx, wanted context.Context, reader records) error {
	defer close(b.ordered)
	defer close(b.work)
	f := filler{b: b, records: reader}
	for f.stage(); f.err == nil && wanted.Err() == nil; {
		j, err := f.newJob(ctx)
		if err != nil {
			return b.leaseError(err, f.record, len(f.staged))
		}
		f.fill(j)
		j.read, _ = reader.Progress()
		j.last = errors.Is(f.err, io.EOF)
		f.parcel = append(f.parcel, j)
		if len(f.parcel) == parcelJobs {
			if err := f.send(ctx); err != nil {
				return err
			}
		}
	}
	if f.err != nil && !errors.Is(f.err, io.EOF) {
		b.readErr = f.err // read by the flusher after ordered is closed
	}
	b.ended = errors.Is(f.err, io.EOF)
	return f.send(ctx)
}

// A filler fills jobs with records, and parcels with jobs. The first record of a job is staged, so that the job's
// lease is known before its buffers hold anything. The others are read in place.
type filler struct {
	records
	b      *build
	record source.Record // framed, waiting for a job
	staged []byte        // its bytes
	err    error         // of the last Next
	parcel []*job        // waiting to be sent
	most   int           // documents of a job so far
}

// stage reads a record that begins a job.
func (f *filler) stage() {
	if cap(f.staged) > 2*pieceBytes {
		f.staged = nil // grown for one long record
	}
	f.staged, f.err = f.Next(f.staged[:0], &f.record)
}

// fill moves the staged record into a job, reads as many into it as may follow, and stages the next one.
func (f *filler) fill(j *job) {
	b := f.b
	j.raw = append(j.raw, f.staged...)
	*j.addDocument(f.most) = document{Record: f.record, raw: span{0, len(j.raw)}}
	for {
		b.mapping.note(j, &j.documents[len(j.documents)-1])
		j.mark = b.target.inside(f.Note())
		full := j.mark != nil || len(j.raw) >= jobTextBytes || len(j.documents) == b.memory.maxRecords
		if full {
			f.stage()
		}
		if full && f.err == nil && j.mark == nil {
			j.mark = b.target.between(f.record.Input, f.record.Ordinal)
		}
		if full || !f.next(j) {
			j.next = f.Noted()
			f.most = max(f.most, len(j.documents))
			return
		}
	}
}

// next reads one more record into a job. It returns false where there is none for this job: the sources ended, or
// the record was staged since it begins a partition, or is longer than a piece and travels alone, under a lease of
// its own.
func (f *filler) next(j *job) bool {
	start := len(j.raw)
	d := j.addDocument(f.most)
	j.raw, f.err = f.Next(j.raw, &d.Record)
	d.raw = span{start, len(j.raw)}
	if f.err == nil {
		if j.mark = f.b.target.between(d.Input, d.Ordinal); j.mark == nil && len(j.raw)-start <= pieceBytes {
			return true
		}
		f.record, f.staged = d.Record, append(f.staged[:0], j.raw[start:]...)
	}
	*d = document{}
	j.documents, j.raw = j.documents[:len(j.documents)-1], j.raw[:start]
	if cap(j.raw) > maxRawBytes {
		j.raw = bytes.Clone(j.raw)
	}
	return false
}

// newJob leases a job for the staged record and those after it: the usual lease, or as much as that one needs. It
// waits for a lease only once the jobs in hand were sent, which hold leases themselves.
func (f *filler) newJob(ctx context.Context) (*job, error) {
	b, start := f.b, time.Now()
	need := max(b.memory.jobLease, longRecordLease(int64(len(f.staged)), b.phases[0].formatter, b.chat))
	lease, ok := b.ledger.TryAcquire(need)
	if !ok {
		if err := f.send(ctx); err != nil {
			return nil, err
		}
		var err error
		lease, err = b.ledger.Acquire(ctx, need)
		waited(&b.waits.reader, start)
		if err != nil {
			return nil, err
		}
	}
	var j *job
	select {
	case j = <-b.idle:
	default:
		j = &job{raw: make([]byte, 0, usualRawBytes)}
	}
	j.lease = lease
	return j, nil
}

// send hands the jobs in hand to the flusher and to a worker.
func (f *filler) send(ctx context.Context) error {
	if len(f.parcel) == 0 {
		return nil
	}
	p := &parcel{jobs: f.parcel, done: make(chan struct{}, 1)}
	f.parcel = make([]*job, 0, parcelJobs)
	for _, to := range []chan *parcel{f.b.ordered, f.b.work} {
		select {
		case to <- p:
		case <-ctx.Done():
			release(p.jobs)
			return ctx.Err()
		}
	}
	return nil
}

// release gives back the leases of jobs that the flusher does not take.
func release(jobs []*job) {
	for _, j := range jobs {
		j.lease.Release()
	}
}

// releaseUnfinished gives back the leases of the jobs that the flusher did not take because a budget
// ended the phase. Call it after all stages have ended.
func (b *build) releaseUnfinished() {
	for p := range b.ordered {
		release(p.jobs)
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

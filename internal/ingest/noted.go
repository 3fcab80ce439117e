package ingest

import (
	"errors"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/source"
)

// unusedFields counts the fields of the documents of a job that nothing used, by their numbers in the job.
type unusedFields struct {
	last    job.Span // in Job.Unused, of documents that were not counted yet
	waiting int64    // how many these are
	times   []int64
	met     []uint16 // with times above 0, in the order in which they were met
}

// add counts the fields of n documents.
func (u *unusedFields) add(j *job.Job, fields job.Span, n int64) {
	if fields != u.last {
		u.settle(j)
		u.last = fields
	}
	u.waiting += n
}

func (u *unusedFields) settle(j *job.Job) {
	for _, n := range j.Unused[u.last.Start:u.last.End] {
		if int(n) >= len(u.times) {
			u.times = slices.Grow(u.times, int(n)+1-len(u.times))[:n+1]
		}
		if u.times[n] == 0 {
			u.met = append(u.met, n)
		}
		u.times[n] += u.waiting
	}
	u.last, u.waiting = job.Span{}, 0
}

// countInto adds what was counted of a job to c, and begins the next.
func (u *unusedFields) countInto(c *counts.Counts, j *job.Job) {
	u.settle(j)
	for _, n := range u.met {
		c.CountUnused(j.Names[n], u.times[n])
		u.times[n] = 0
	}
	u.met = u.met[:0]
}

// noteDamage counts a bad record that stands for a part of an input, and says so at once.
func (f *flusher) noteDamage(input int, bad *source.RecordError) {
	var lost *source.DamageError
	if !errors.As(bad, &lost) {
		return
	}
	d := &f.state.Damaged
	if d.First == "" {
		d.First = bad.Error()
	}
	if d.Last != input+1 {
		d.Last = input + 1
		f.state.DamagedInputs++
	}
	if lost.Lost == source.WholeFile {
		f.state.DamagedCutOff++
	}
	f.b.notice("damaged, left out: %v", bad)
}

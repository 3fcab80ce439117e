package ingest

import (
	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/tokenize"
)

const (
	// pieceBytes is the longest stretch of a document of a cuttable format in one record. It is a
	// constant, since cuts must not depend on the memory cap.
	pieceBytes = 64 << 10
	// jobTextBytes is the text after which a job is full; its last record may go over by a piece.
	jobTextBytes = 32 << 10
	// usualRawBytes is the buffer of text that a job begins with: enough unless its last record is long.
	usualRawBytes = jobTextBytes + 8<<10
	// maxRawBytes is the largest buffer of text that a job keeps.
	maxRawBytes = 2 * (jobTextBytes + pieceBytes)
	// parcelJobs is how many jobs change hands together, where leases allow it.
	parcelJobs = 4
	// maxRecordBytes is the longest record of a format that cannot be cut, a constant for the same
	// reason.
	maxRecordBytes = 4 << 20
	// maxJobRecords bounds the bookkeeping of a job made of tiny records.
	maxJobRecords = 1024
	// recordBytes is what a document takes besides its text and its ids.
	recordBytes = 256

	// worstExpansion is how many bytes of text a byte of a record can become: an ill-formed byte
	// turns into U+FFFD, three bytes.
	worstExpansion = 3
	// worstIDBytes is how many bytes of ids a byte of text can become: one id of four bytes.
	worstIDBytes = 4
	// maxNormalized is what a normalizer may make of a document: twelve times a piece, more than
	// any normalization form does.
	maxNormalized = 12 * pieceBytes
	// spareIDs is how many ids a document may have beyond worstExpansion for each byte of its text;
	// a record's bookkeeping has room for them.
	spareIDs = 16
)

// encoderOptions returns the options of every encoder of a build.
func encoderOptions(cacheBytes int) tokenize.EncoderOptions {
	return tokenize.EncoderOptions{CacheBytes: cacheBytes, MaxNormalized: maxNormalized}
}

// A job is a run of consecutive records on its way through the pipeline: filled by the reader,
// tokenized by one worker, and taken in order by the flusher, which releases its lease. Jobs are
// reused with their buffers; the lease covers the buffers at their largest.
type job struct {
	lease *budget.Lease

	// Filled by the reader.
	raw       []byte // the records, back to back
	documents []document
	next      source.Position // where reading continues after this job
	read      int64           // bytes of the sources read up to here
	last      bool            // the sources end after it
	mark      *mark           // of a plan: a partition ends with this job
	answered  *answered       // of Map: the last answer in this job, nil for none

	// Filled by the worker.
	ids     []uint32 // of all documents of the job, back to back
	mask    []bool   // of the ids of conversations: whether they are trained on
	keys    []byte   // what Dedup compares of each document, back to back
	stopped bool     // the build was stopped before the worker was done: the next run does this job again
}

// A parcel is some consecutive jobs that change hands together: waking up a goroutine takes as long as a good part
// of a job. The jobs stay apart, since a checkpoint is taken at the end of a job.
type parcel struct {
	jobs []*job
	done chan struct{} // receives once when the worker is through
}

// A document is one record on its way: a whole document, or one piece of a long one.
type document struct {
	// Set by the reader.
	source.Record
	raw    span // its bytes, in job.raw
	mapped bool // it went through Map

	// Set by the worker.
	ids, target span       // in job.ids; target only of pairs
	mask        span       // in job.mask; only of conversations
	shape       chat.Shape // of the conversation that its text was made of, "" of other texts
	// turns of the assistant that are not in its text, and the number of their first message
	unfound, firstUnfound int
	toolsLeftOut          bool // the chat template writes nothing of its tools, or of their calls
	textBytes             int64
	hash                  uint64 // of the text; of the first piece where there are several
	replaced              int64  // in the text, and before that in what was sent to Map
	judged                       // by the filter
	err                   error  // why the record is bad
}

type span struct{ start, end int }

// longRecordLease returns the lease of a job of one record longer than a piece: its buffers, and
// what formatting it takes beyond a worker's scratch.
func longRecordLease(raw int64, f *example.Formatter, c *chats) int64 {
	if c != nil {
		return c.leaseBytes(raw, 1) + c.ScratchBytes(raw) - c.ScratchBytes(pieceBytes)
	}
	return leaseBytes(raw, 1, f.OverheadBytes()) + f.ScratchBytes(raw) - f.ScratchBytes(pieceBytes)
}

// leaseBytes bounds a job's buffers for raw bytes of text in the given number of records, each with
// templateBytes of a template's own text.
func leaseBytes(raw, records, templateBytes int64) int64 {
	text := worstExpansion*raw + records*templateBytes
	return raw + worstIDBytes*text + records*recordBytes
}

// reset makes the job ready for the next records, dropping buffers that an unusually large record
// left behind.
func (j *job) reset() {
	if cap(j.raw) > maxRawBytes {
		j.raw = nil
	}
	if cap(j.ids) > worstExpansion*(jobTextBytes+pieceBytes) {
		j.ids = nil
	}
	if cap(j.mask) > worstExpansion*(jobTextBytes+pieceBytes) {
		j.mask = nil
	}
	clear(j.documents) // errors must not outlive their job
	j.raw, j.ids, j.mask, j.keys, j.documents = j.raw[:0], j.ids[:0], j.mask[:0], j.keys[:0], j.documents[:0]
	j.stopped, j.mark, j.answered = false, nil, nil
}

// addDocument adds a zero document. most is how many the jobs before had at most: a job's buffers grow once.
func (j *job) addDocument(most int) *document {
	n := len(j.documents)
	if n == cap(j.documents) {
		grown := make([]document, n, max(2*n, most+most/8, 8))
		copy(grown, j.documents)
		clear(grown[n:cap(grown)]) // maps the memory, which the garbage collector may be the first to read
		j.documents = grown
	}
	j.documents = j.documents[:n+1] // reset cleared it
	return &j.documents[n]
}

// record describes the document's bytes to package example, which does not know package source.
func (d *document) record() example.Record {
	rec := example.Record{Columns: d.Columns, Comma: d.Comma, Decoded: d.Decoded}
	if d.Columns != nil {
		rec.Template = d.Format.Template()
	}
	return rec
}

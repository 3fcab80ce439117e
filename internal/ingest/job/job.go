// Package job holds what the stages of a build pass on: documents, in jobs, on lanes.
package job

import (
	"slices"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/zeebo/xxh3"
)

const (
	// PieceBytes is the longest stretch of a document of a cuttable format in one record. It is a
	// constant, since cuts must not depend on the memory cap.
	PieceBytes = 64 << 10
	// TextBytes is the text after which a job is full; its last record may go over by a piece.
	TextBytes = 32 << 10
	// usualRawBytes is the buffer of text that a job begins with: enough unless its last record is long.
	usualRawBytes = TextBytes + 8<<10
	// MaxRawBytes is the largest buffer of text that a job keeps.
	MaxRawBytes = 2 * (TextBytes + PieceBytes)
	// ParcelJobs is how many jobs change hands together, where leases allow it.
	ParcelJobs = 4
	// MaxRecordBytes is the longest record of a format that cannot be cut, a constant for the same
	// reason.
	MaxRecordBytes = 4 << 20
	// MaxRecords bounds the bookkeeping of a job made of tiny records.
	MaxRecords = 1024
	// RecordBytes is what a document takes besides its text and its ids.
	RecordBytes = 256

	// WorstExpansion is how many bytes of text a byte of a record can become: an ill-formed byte
	// turns into U+FFFD, three bytes.
	WorstExpansion = 3
	// WorstIDBytes is how many bytes of ids a byte of text can become: one id of four bytes.
	WorstIDBytes = 4
	// SpareIDs is how many ids a document may have beyond WorstExpansion for each byte of its text;
	// a record's bookkeeping has room for them.
	SpareIDs = 16
)

// A Job is a run of consecutive records on its way through the pipeline: filled by the reader,
// tokenized by one worker, and taken in order by the flusher, which releases its lease. Jobs are
// reused with their buffers; the lease covers the buffers at their largest.
type Job struct {
	Lease *budget.Lease

	// Filled by the reader.
	Raw       []byte // the records, back to back
	Documents []Document
	runs      []run
	ends      []int32
	Next      source.Position // where reading continues after this job
	Read      int64           // bytes of the sources read up to here
	Last      bool            // the sources end after it
	Mark      *Mark           // where a partition of a plan ends with this job
	Answered  *Answered       // Map's last answer in this job, nil for none

	// Filled by the worker.
	IDs     []uint32 // those of all documents, back to back
	Mask    []bool   // for ids of conversations: whether they are trained on
	Turns   []Turn   // for conversations that make a row of each
	Blocks  []Block
	Lengths []int32  // the tokens of the rows that were made
	Parts   []int32  // which of its document each is
	Keys    []byte   // what Dedup compares of each document, back to back
	Unused  []uint16 // the fields that nothing uses, by their numbers in Names; documents may share a stretch
	Names   []string
	Stopped bool // the build was stopped before the worker was done: the next run does this job again
}

// A Parcel is some consecutive jobs that change hands together: waking up a goroutine takes as long as a good part
// of a job. The jobs stay apart, since a checkpoint is taken at the end of a job.
type Parcel struct {
	Jobs []*Job
	Done chan struct{} // receives once when the worker is through
}

// Looks is what a document's text looks like. Most look like nothing of this.
type Looks struct {
	// It begins with a control token, as if it was rendered, or with one that the tokenizer lacks.
	Rendered, Foreign bool
	Separator         bool // it is a control token alone
	Missing           bool // it is a word for a missing value
	Markup            bool // it begins as a page of HTML
	Object            bool // it looks like an object, or one was printed
}

// A Document is one record on its way: a whole document, or one piece of a long one.
type Document struct {
	// Set by the reader.
	source.Record
	Raw    Span // its bytes, in Job.Raw
	Mapped bool // it went through Map

	// Set by the worker.
	IDs, Target Span   // in Job.IDs; Target only of pairs
	Made        Made   // in place of the ids
	Mask        Span   // in Job.Mask; only of conversations
	Unused      Span   // in Job.Unused
	Turns       Span   // in Job.Turns; only of conversations that make a row of each turn
	Field       string // the one of several that the text was taken from

	Conversation *Conversation // nil for other texts
	Looks
	TextBytes int64
	Hash      uint64 // the text's; the first piece's where there are several
	Replaced  int64  // in the text, and before that in what was sent to Map
	Judged           // what the filter decides
	Bad       error  // why the record is bad
}

// MaskIn returns the mask of the ids of a conversation, nil for other texts.
func (d *Document) MaskIn(j *Job) []bool { return j.Mask[d.Mask.Start:d.Mask.End] }

// A Conversation is what the text of a conversation is like. Most are alike, and share one: in the document itself it
// would be a fifth of its memory, which no processor has near when it comes to write there.
type Conversation struct {
	Shape chat.Shape
	chat.Noted
	chat.Losses
}

// Equal reports whether two conversations are alike. Either may be nil.
func (c *Conversation) Equal(d *Conversation) bool {
	if c == d || c == nil || d == nil {
		return c == d
	}
	return c.Shape == d.Shape && c.Losses == d.Losses && c.ReasoningDropped == d.ReasoningDropped &&
		c.RejectedLeftOut == d.RejectedLeftOut && slices.Equal(c.MappedRoles, d.MappedRoles) &&
		slices.Equal(c.UnknownRoles, d.UnknownRoles)
}

// A Turn is a row of a conversation: the first ids of the row before, without loss, and ids of its own.
type Turn struct {
	Kept      int
	IDs, Mask Span // in Job.IDs and Job.Mask
}

// A Span is a stretch of one of a job's buffers.
type Span struct{ Start, End int }

// LeaseBytes bounds a job's buffers for raw bytes of text in the given number of records, each with
// templateBytes of a template's own text.
func LeaseBytes(raw, records, templateBytes int64) int64 {
	text := WorstExpansion*raw + records*templateBytes
	return raw + WorstIDBytes*text + records*RecordBytes
}

// reset makes the job ready for the next records, dropping buffers that an unusually large record
// left behind.
func (j *Job) reset() {
	if cap(j.Raw) > MaxRawBytes {
		j.Raw = nil
	}
	if cap(j.IDs) > WorstExpansion*(TextBytes+PieceBytes) {
		j.IDs = nil
	}
	if cap(j.Mask) > WorstExpansion*(TextBytes+PieceBytes) {
		j.Mask = nil
	}
	if cap(j.Unused) > MaxRecords {
		j.Unused = nil
	}
	j.runs, j.ends = j.runs[:0], j.ends[:0]
	j.Raw, j.IDs, j.Mask, j.Turns = j.Raw[:0], j.IDs[:0], j.Mask[:0], j.Turns[:0]
	j.Keys, j.Documents = j.Keys[:0], j.Documents[:0]
	j.Unused, j.Names = j.Unused[:0], nil
	j.Blocks, j.Lengths, j.Parts = j.Blocks[:0], j.Lengths[:0], j.Parts[:0]
	j.Stopped, j.Mark, j.Answered = false, nil, nil
}

// AddDocument adds a zero document. most is how many the jobs before had at most: a job's buffers grow once.
func (j *Job) AddDocument(most int) *Document {
	d := &j.room(1, most)[0]
	*d = Document{}
	return d
}

// room adds n documents, which are those of an earlier job as yet.
func (j *Job) room(n, most int) []Document {
	at := len(j.Documents)
	if at+n > cap(j.Documents) {
		grown := make([]Document, at, max(2*at, at+n, most+most/8, 8))
		copy(grown, j.Documents)
		clear(grown[at:cap(grown)]) // maps the memory, which the garbage collector may be the first to read
		j.Documents = grown
	}
	j.Documents = j.Documents[:at+n]
	return j.Documents[at:]
}

// A Runner reads records many at a time, as source.Reader.Run does.
type Runner interface {
	Run(dst []byte, full int, ends []int32, rec *source.Record) (_ []byte, _ []int32, records int)
}

// run is records that were read at once, of which a worker makes documents.
type run struct {
	first     source.Record
	at, start int // its place in Job.Documents, and in Job.Raw
	ends      []int32
}

// AddRun reads a run of records into the job, which holds records documents at most, and reports whether there was one.
// most is that of AddDocument.
func (j *Job) AddRun(from Runner, records, most int) bool {
	if len(j.runs) == 0 {
		j.ends = slices.Grow(j.ends, records)
	}
	used, n := len(j.ends), len(j.runs)
	j.runs = append(j.runs, run{at: len(j.Documents), start: len(j.Raw)})
	r := &j.runs[n]
	room := records - max(used, r.at) // rows that are no records take some of it
	j.Raw, r.ends, records = from.Run(j.Raw, TextBytes, j.ends[used:used:used+room], &r.first)
	if records == 0 {
		j.runs = j.runs[:n]
		return false
	}
	j.ends = j.ends[:used+len(r.ends)]
	j.room(records, most)
	return true
}

// Unroll makes documents of the records that were read many at a time. It is for the worker: the reader is alone.
func (j *Job) Unroll() {
	for i := range j.runs {
		r := &j.runs[i]
		documents := j.Documents[r.at:]
		for k, start, n := 0, r.start, 0; k < len(r.ends); k++ {
			end := int(r.ends[k])
			if end < 0 {
				end = ^end
			} else {
				d := &documents[n]
				*d = Document{} // a literal with fields would be made elsewhere and copied
				d.Record, d.Raw = r.first, Span{start, end}
				d.Ordinal += int64(n)
				d.Row += int64(k)
				if d.Offset >= 0 { // rows of columns have none
					d.Offset += int64(start - r.start)
				}
				n++
			}
			if start = end + 1; j.Raw[end] == '\r' {
				start++
			}
		}
	}
}

// Layout describes the document's bytes to package example, which does not know package source.
func (d *Document) Layout() example.Record {
	rec := example.Record{Columns: d.Columns, Comma: d.Comma, Decoded: d.Decoded, Typed: d.Typed}
	if d.Columns != nil {
		rec.Template = d.Format.Template()
	}
	return rec
}

// Judged is what a worker found about a document for the filter.
type Judged struct {
	Dropped filter.Reason
	Has     uint64   // the fields of conditions that the record has, a bit each
	AsText  bool     // filter.Verdict has it
	Names   []string // fields of the very first record, where it lacks one
	Key     Span     // in Job.Keys
}

// LeaveOut marks a document that Map left out.
func (d *Document) LeaveOut() { d.Dropped = filter.ByMap }

// A Mark is a border between partitions, on its way from the reader to the flusher.
type Mark struct {
	Phase int
	At    source.Mark
	Text  int64 // estimate of the text before it
}

// Answered is the last answer that a checkpoint has used.
type Answered struct {
	Before source.Position `json:"before"` // its record, without Known and Done
	Done   int             `json:"done"`   // how many of Done that position has
	Sum    uint64          `json:"sum"`    // XXH3-64 of the answer
}

// NewAnswered notes the answer to the record after a position.
func NewAnswered(before source.Position, answer []byte) *Answered {
	a := &Answered{Before: before, Done: len(before.Done), Sum: xxh3.Hash(answer)}
	a.Before.Known, a.Before.Done = nil, nil // the position of the checkpoint has them
	return a
}

// Rewind returns the position before the record of the answer, of a checkpoint at a position.
func (a *Answered) Rewind(at source.Position) source.Position {
	before := a.Before
	before.Known, before.Done = at.Known, at.Done[:min(a.Done, len(at.Done))]
	return before
}

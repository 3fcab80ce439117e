package read

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/command"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/jsonscan"
	"github.com/dsload/dsload/internal/units"
	"github.com/zeebo/xxh3"
)

// The option Map sends records through a command before anything else of a build sees them:
//
//	source -> feed -> the command -> Next -> read
//
// feed writes each record as a line, after it has put what is known of the record into a queue of bounded
// length. Next takes the record from the queue and its answer from the command. Nothing in an answer says which
// record it belongs to: answers are counted, and a command that gives more or fewer than records ends the
// build, which then keeps nothing that the answers may have gone into. A record is in the queue before the
// command sees it, so output while the queue is empty is an answer too many; Next looks for it while it waits,
// since a command that nobody reads from stops reading. A checkpoint keeps the checksum of the last answer. A
// run that resumes asks for this answer again, and continues only if it is the same.

const (
	// mapAhead is how many records may wait for their answers. A command that flushes its output only when 8 KiB
	// are full, as many do by default, still answers in time.
	mapAhead = 2048
	// queuedBytes is what a record takes while it waits: its description and its position.
	queuedBytes    = 1 << 10
	mapBufferBytes = 64 << 10
	// mapStall is how long a command may give no answer before a notice says so.
	mapStall = 30 * time.Second
	// shownAnswer is how much of a wrong answer an error shows.
	shownAnswer = 80
)

// ErrMiscounted is the cause where a command gave another number of answers than it got records. What was made
// of its answers must not be kept.
var ErrMiscounted = errors.New("another number of answers than records")

// ErrCommand is the cause where a command failed, or answered with what is no answer.
var ErrCommand = errors.New("the command of map failed")

// MapConfig says what the command of a build is and whose records it gets.
type MapConfig struct {
	Command string
	Out     string // the dataset, for errors
	Rows    *example.Worker
	Reader  *source.Reader
	URI     func(input int) string // the name of an input by its number
	Notice  func(format string, args ...any)
	Waiting *job.Waiting // for answers

	// Of a run that resumes: the last answer that its checkpoint has used, and where the checkpoint is. The reader is
	// at the position before the record of this answer.
	Answered *job.Answered
	Resume   source.Position
}

// A Mapping is a reader of records that go through a command. feed is the only one that uses the source.Reader.
type Mapping struct {
	MapConfig
	process *command.Process
	line    *mapLine
	queue   chan queued
	stopped context.Context // ends when the command is being stopped
	total   int64           // bytes of the sources

	resuming bool // the records before the checkpoint are read

	asked, got atomic.Int64 // records sent, and their answers
	writing    atomic.Bool  // a record is being written to the command
	waiting    atomic.Bool  // for a record or its answer

	last     queued          // the record that Next returned
	before   source.Position // last
	noted    source.Position
	answer   []byte // the answer to last
	leftOut  bool   // the answer leaves the record out
	ends     []func()
	feedDone sync.WaitGroup
}

// queued is a record on its way through the command.
type queued struct {
	source.Record
	at       source.Position // after it
	read     int64           // counted as source.Reader.Progress does
	replaced int
	asked    bool  // it was sent, and will be answered
	again    bool  // its answer is to be compared with that of an earlier run
	err      error // the end of the sources, instead of a record
}

// StartMap runs the command. The mapping ends with either context.
func StartMap(pipeline, wanted context.Context, c MapConfig) (*Mapping, error) {
	process, err := command.Start(c.Command, func(line string) { c.Notice("map: %s", line) })
	if err != nil {
		return nil, fault.BadOption("map", c.Command, "cannot be run: %v", err)
	}
	m := &Mapping{MapConfig: c, process: process, queue: make(chan queued, mapAhead),
		line: &mapLine{w: bufio.NewWriterSize(process, mapBufferBytes), rows: c.Rows}, resuming: c.Answered != nil}
	m.last.at = c.Reader.Position()
	_, m.total = c.Reader.Progress()
	var cancel context.CancelFunc
	m.stopped, cancel = context.WithCancel(pipeline)
	stop := context.AfterFunc(wanted, cancel)
	kill := context.AfterFunc(m.stopped, process.Stop)
	m.ends = []func(){cancel, func() { stop(); kill() }}
	m.feedDone.Go(func() { m.feed(m.stopped) })
	m.feedDone.Go(func() { m.watch(m.stopped, mapStall) })
	return m, nil
}

// Close ends the command and waits for feed.
func (m *Mapping) Close() {
	for _, end := range m.ends {
		end()
	}
	m.process.Stop()
	m.feedDone.Wait()
	m.process.Close()
}

// feed sends the records to the command until the sources end or the mapping is stopped.
func (m *Mapping) feed(ctx context.Context) {
	cputime.Label("mapper")
	var data []byte
	for {
		if cap(data) > 2*job.PieceBytes {
			data = nil // grown for one long record
		}
		q := queued{}
		data, q.err = m.Reader.Next(data[:0], &q.Record)
		q.read, _ = m.Reader.Progress()
		if q.err == nil {
			q.at = m.Reader.Position()
			if !m.set(&q, data) {
				continue
			}
		}
		select {
		case m.queue <- q:
		case <-ctx.Done():
			return
		}
		switch {
		case q.err != nil:
			m.process.CloseInput()
			return
		case !q.asked:
			continue
		}
		m.asked.Add(1)
		m.writing.Store(true)
		err := m.line.write()
		m.writing.Store(false)
		if err != nil { // the command reads no more: Next finds out why
			<-ctx.Done()
			return
		}
	}
}

// set prepares a record for the command, and reports whether it is to be queued at all: of a resumed run, the
// records before the checkpoint were built, and the first of them is only to be answered again.
func (m *Mapping) set(q *queued, data []byte) bool {
	resuming := m.resuming
	if at, to := &q.at, &m.Resume; resuming && at.Input == to.Input && at.Offset == to.Offset && at.Row == to.Row &&
		at.Ordinal == to.Ordinal {
		m.resuming = false
	}
	if q.Err == nil && !q.Skipped {
		var err error
		if q.replaced, err = m.line.set(&q.Record, data); err != nil {
			q.Err = &source.RecordError{URI: m.URI(q.Input), Input: q.Input, Row: q.Row, Offset: q.Offset,
				Member: q.Member, Cause: err}
		}
		q.asked = err == nil
	}
	q.again = resuming && q.asked
	return !resuming || q.asked
}

// Next is like source.Reader.Next. A record that was answered is a JSON object, however it was written.
func (m *Mapping) Next(dst []byte, rec *source.Record) ([]byte, error) {
	m.waiting.Store(true)
	defer m.waiting.Store(false)
	for {
		q, err := m.nextQueued()
		if err != nil {
			return dst, err
		}
		if q.err != nil {
			m.last.read = q.read
			return dst, m.end(q.err)
		}
		out := dst
		if m.answer, m.leftOut = nil, false; q.asked {
			asked := time.Now()
			out, err = m.takeAnswer(dst, &q)
			if m.Waiting.Since(asked); err != nil {
				return dst, err
			}
			q.Format, q.Decoded, q.Typed, q.Columns, q.Comma = source.JSONL, false, false, nil, 0
		}
		m.before, m.last = m.last.at, q
		if q.again {
			continue
		}
		*rec = q.Record
		return out, nil
	}
}

// nextQueued waits for the next record.
func (m *Mapping) nextQueued() (q queued, err error) {
	select {
	case q = <-m.queue:
		return q, nil
	default:
	}
	for output := m.process.Ready(); ; output = nil {
		select {
		case q = <-m.queue:
			return q, nil
		case <-m.stopped.Done():
			return q, context.Canceled
		case <-output:
		}
		select {
		case q = <-m.queue: // it may be the answer to this one
			return q, nil
		default:
		}
		if len(m.process.Output()) > 0 {
			return q, m.tooMany()
		}
	}
}

// takeAnswer appends the answer to a record to dst.
func (m *Mapping) takeAnswer(dst []byte, q *queued) ([]byte, error) {
	out, err := m.process.AppendLine(dst, job.MaxRecordBytes)
	answer := out[len(dst):]
	trimmed := bytes.Trim(answer, " \t")
	switch {
	case m.stopped.Err() != nil:
		return dst, context.Canceled
	case errors.Is(err, command.ErrTooLong):
		q.Err = &source.RecordError{URI: m.URI(q.Input), Input: q.Input, Row: q.Row, Offset: q.Offset,
			Member: q.Member, Cause: fault.Of(cause.TooLarge,
				"{map} answered with more than the %v that a record may have",
				units.Size(job.MaxRecordBytes))}
	case err == io.ErrUnexpectedEOF && (!jsonscan.Valid(answer) || m.process.Wait() != nil), // a line without its end
		err != nil && err != io.ErrUnexpectedEOF:
		return dst, m.tooFew(q, answer)
	case string(trimmed) == "null":
		m.leftOut, out = true, dst
	case !bytes.HasPrefix(trimmed, []byte("{")):
		return dst, fault.Of(ErrCommand, "build %s: {map} answered %s with what is not a JSON object: %.*q; "+
			"it must write nothing but answers to its standard output, and the rest to stderr",
			m.Out, m.where(q), shownAnswer, answer)
	}
	m.got.Add(1)
	if q.again && xxh3.Hash(answer) != m.Answered.Sum {
		return dst, fault.Of(ErrOtherAnswer, "resume %s: {map} answers %s otherwise than before: it changed, it "+
			"depends on more than the record, or it had left out a line before, so that its answers belong to other "+
			"records; start afresh with {overwrite}", m.Out, m.where(q))
	}
	m.answer = answer
	return out, nil
}

// ErrOtherAnswer is the cause where a record is answered otherwise than in an earlier run.
var ErrOtherAnswer = fault.New(fault.Corrupt, "another answer than before")

// Attach puts what Next found out about the last record, besides the record, into a job.
func (m *Mapping) Attach(j *job.Job, d *job.Document) {
	if m == nil || !m.last.asked {
		return
	}
	d.Mapped, d.Replaced = true, int64(m.last.replaced)
	if m.leftOut {
		d.LeaveOut()
	}
	if m.answer != nil {
		j.Answered = job.NewAnswered(m.before, m.answer)
	}
}

// Note is like source.Reader.Note.
func (m *Mapping) Note() *source.Position {
	m.noted = m.last.at
	return &m.noted
}

// Noted is like source.Reader.Noted.
func (m *Mapping) Noted() source.Position { return m.noted }

// Progress is like source.Reader.Progress.
func (m *Mapping) Progress() (read, total int64) {
	return m.last.read, m.total
}

// MapShare returns the share of the memory cap that a mapping takes.
func MapShare() budget.Share {
	return budget.Share{Name: "map",
		Bytes: int64(command.MemoryBytes + mapBufferBytes + mapAhead*queuedBytes + 2*job.MaxRecordBytes),
		Why: fmt.Sprintf("a record and an answer of up to %v, and up to %d records that wait for theirs; the command's "+
			"own memory is not part of the cap", units.Size(job.MaxRecordBytes), mapAhead)}
}

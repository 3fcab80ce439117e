package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/command"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
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
// build, which then keeps nothing that the answers may have gone into. A checkpoint keeps the checksum of the
// last answer. A run that resumes asks for this answer again, and continues only if it is the same.

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

// errMiscounted is the cause where a command gave another number of answers than it got records. What was made
// of its answers must not be kept.
var errMiscounted = errors.New("another number of answers than records")

// answered is the last answer that a checkpoint has used.
type answered struct {
	Before source.Position `json:"before"` // its record, without Known and Done
	Done   int             `json:"done"`   // how many of Done that position has
	Sum    uint64          `json:"sum"`    // XXH3-64 of the answer
}

// newAnswered notes the answer to the record after a position.
func newAnswered(before source.Position, answer []byte) *answered {
	a := &answered{Before: before, Done: len(before.Done), Sum: xxh3.Hash(answer)}
	a.Before.Known, a.Before.Done = nil, nil // as the position of the checkpoint has them
	return a
}

// before returns the position before the record of the answer, of a checkpoint at a position.
func (a *answered) before(at source.Position) source.Position {
	before := a.Before
	before.Known, before.Done = at.Known, at.Done[:min(a.Done, len(at.Done))]
	return before
}

// A mapping is a reader of records that go through a command. feed is the only one that uses the source.Reader.
type mapping struct {
	b       *build
	reader  *source.Reader
	uri     func(input int) string
	process *command.Process
	line    *mapLine
	queue   chan queued
	stopped context.Context // ends when the command is being stopped

	// Of a run that resumes: where the checkpoint is, and the answer that comes before it.
	resume *source.Position
	again  *answered

	asked, got atomic.Int64 // records sent, and their answers
	waiting    atomic.Bool  // for an answer

	last     queued          // that Next returned
	before   source.Position // last
	noted    source.Position
	answer   []byte // to last
	ends     []func()
	feedDone sync.WaitGroup
}

// queued is a record on its way through the command.
type queued struct {
	source.Record
	at       source.Position // after it
	read     int64           // as source.Reader.Progress has it
	replaced int
	asked    bool  // it was sent, and will be answered
	again    bool  // its answer is to be compared with that of an earlier run
	err      error // the end of the sources, instead of a record
}

// startMap runs the command for the records of a reader, whose inputs have names by their numbers. Where an
// earlier run is resumed, reader must be at the position before its last answer. The mapping ends with either
// context.
func (b *build) startMap(pipeline, wanted context.Context, reader *source.Reader, uri func(input int) string,
	f *flusher) (*mapping, error) {
	process, err := command.Start(b.opts.Map, func(line string) { b.notice("map: %s", line) })
	if err != nil {
		return nil, fault.BadOption("map", b.opts.Map, "cannot be run: %v", err)
	}
	m := &mapping{b: b, reader: reader, uri: uri, process: process, queue: make(chan queued, mapAhead),
		line: newMapLine(process, b.current.formatter)}
	m.last.at = reader.Position()
	if m.again = f.state.Answered; m.again != nil {
		m.resume = &f.state.Position
	}
	var cancel context.CancelFunc
	m.stopped, cancel = context.WithCancel(pipeline)
	stop := context.AfterFunc(wanted, cancel)
	kill := context.AfterFunc(m.stopped, process.Stop)
	m.ends = []func(){cancel, func() { stop(); kill() }}
	m.feedDone.Go(func() { m.feed(m.stopped) })
	m.feedDone.Go(func() { m.watch(m.stopped, mapStall) })
	return m, nil
}

// close ends the command and waits for feed.
func (m *mapping) close() {
	for _, end := range m.ends {
		end()
	}
	m.process.Stop()
	m.feedDone.Wait()
	m.process.Close()
}

// feed sends the records to the command until the sources end or the mapping is stopped.
func (m *mapping) feed(ctx context.Context) {
	var data []byte
	for {
		if cap(data) > 2*pieceBytes {
			data = nil // grown for one long record
		}
		q := queued{}
		data, q.err = m.reader.Next(data[:0], &q.Record)
		q.read, _ = m.reader.Progress()
		if q.err == nil {
			q.at = m.reader.Position()
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
		if m.line.write() != nil { // the command reads no more: Next finds out why
			<-ctx.Done()
			return
		}
	}
}

// set prepares a record for the command, and reports whether it is to be queued at all: of a resumed run, the
// records before the checkpoint were built, and the first of them is only to be answered again.
func (m *mapping) set(q *queued, data []byte) bool {
	resuming := m.resume != nil
	if resuming && samePlace(&q.at, m.resume) {
		m.resume = nil
	}
	if q.Err == nil && !q.Skipped {
		var err error
		if q.replaced, err = m.line.set(&q.Record, data); err != nil {
			q.Err = &source.RecordError{URI: m.uri(q.Input), Input: q.Input, Row: q.Row, Offset: q.Offset,
				Member: q.Member, Cause: err}
		}
		q.asked = err == nil
	}
	q.again = resuming && q.asked
	return !resuming || q.asked
}

func samePlace(a, b *source.Position) bool {
	return a.Input == b.Input && a.Offset == b.Offset && a.Row == b.Row && a.Ordinal == b.Ordinal
}

// Next is like source.Reader.Next. A record that was answered is a JSON object, however it was written.
func (m *mapping) Next(dst []byte, rec *source.Record) ([]byte, error) {
	for {
		var q queued
		select {
		case q = <-m.queue:
		case <-m.stopped.Done():
			return dst, context.Canceled
		}
		if q.err != nil {
			m.last.read = q.read
			return dst, m.end(q.err)
		}
		out, err := dst, error(nil)
		if m.answer = nil; q.asked {
			if out, err = m.takeAnswer(dst, &q); err != nil {
				return dst, err
			}
			q.Format, q.Decoded, q.Columns, q.Comma = source.JSONL, false, nil, 0
		}
		m.before, m.last = m.last.at, q
		if q.again {
			continue
		}
		*rec = q.Record
		return out, nil
	}
}

// takeAnswer appends the answer to a record to dst.
func (m *mapping) takeAnswer(dst []byte, q *queued) ([]byte, error) {
	m.waiting.Store(true)
	out, err := m.process.AppendLine(dst, maxRecordBytes)
	m.waiting.Store(false)
	answer := out[len(dst):]
	switch {
	case m.stopped.Err() != nil:
		return dst, context.Canceled
	case errors.Is(err, command.ErrTooLong):
		q.Err = &source.RecordError{URI: m.uri(q.Input), Input: q.Input, Row: q.Row, Offset: q.Offset,
			Member: q.Member, Cause: fault.Of(cause.TooLarge,
				"{map} answered with more than the %v that a record may have",
				units.Size(maxRecordBytes))}
	case err == io.ErrUnexpectedEOF && m.process.Wait() != nil, err != nil && err != io.ErrUnexpectedEOF:
		return dst, m.tooFew(q)
	case !bytes.HasPrefix(bytes.TrimLeft(answer, " \t"), []byte("{")):
		return dst, m.noObject(q, answer)
	}
	m.got.Add(1)
	if q.again && xxh3.Hash(answer) != m.again.Sum {
		return dst, fault.Of(errOtherAnswer, "resume %s: {map} answers %s otherwise than before: it changed, it "+
			"depends on more than the record, or it had left out a line before, so that its answers belong to other "+
			"records; start afresh with {overwrite}", m.b.opts.Out, m.where(q))
	}
	m.answer = answer
	return out, nil
}

// errOtherAnswer is the cause where a record is answered otherwise than in an earlier run.
var errOtherAnswer = fault.New(fault.Corrupt, "another answer than before")

// note puts what Next found out about the last record, besides the record, into a job.
func (m *mapping) note(j *job, d *document) {
	if m == nil || !m.last.asked {
		return
	}
	d.mapped, d.replaced = true, int64(m.last.replaced)
	if m.answer != nil {
		j.answered = newAnswered(m.before, m.answer)
	}
}

// Note is like source.Reader.Note.
func (m *mapping) Note() *source.Position {
	m.noted = m.last.at
	return &m.noted
}

// Noted is like source.Reader.Noted.
func (m *mapping) Noted() source.Position { return m.noted }

// Progress is like source.Reader.Progress.
func (m *mapping) Progress() (read, total int64) {
	return m.last.read, m.b.meter.totalBytes.Load()
}

// where names a record in errors.
func (m *mapping) where(q *queued) string {
	return fmt.Sprintf("row %d of %s", q.Row, sourceName(m.uri(q.Input)))
}

// numbers says how many records the command got and answered.
func (m *mapping) numbers() string {
	return fmt.Sprintf("it answered %s of %s records", units.Count(m.got.Load()), units.Count(m.asked.Load()))
}

// said returns the last of the command's stderr for the end of a sentence.
func (m *mapping) said() string {
	if text := m.process.Stderr(); text != "" {
		return ", and its stderr ends with: " + text
	}
	return ", and wrote nothing to stderr"
}

// end ends the reading with what ended the sources. Where all was read, the command must end well too.
func (m *mapping) end(err error) error {
	if err != io.EOF {
		return err
	}
	extra, err := m.process.AppendLine(nil, maxRecordBytes)
	if m.stopped.Err() != nil {
		return context.Canceled
	}
	if len(extra) > 0 || err == nil || errors.Is(err, command.ErrTooLong) {
		return fault.Of(errMiscounted,
			"build %s: {map} gave more answers than the %s records it got, the first too many: "+
				"%.*q; it must answer each with one line: %s", m.b.opts.Out, units.Count(m.asked.Load()), shownAnswer,
			extra,
			givenUp)
	}
	if status := m.process.Wait(); m.stopped.Err() != nil {
		return context.Canceled
	} else if status != nil {
		return fault.Errorf("build %s: {map} answered all %s records and then failed (%v)%s; "+
			"once it is fixed, run the same command again: it resumes from its last checkpoint",
			m.b.opts.Out, units.Count(m.asked.Load()), status, m.said())
	}
	return io.EOF
}

const givenUp = "answers may belong to other records, so nothing of the unfinished build was kept; " +
	"fix it and run the same command again"

// tooFew returns the error for a command whose answers end before the one to a record.
func (m *mapping) tooFew(q *queued) error {
	status := m.process.Wait()
	if m.stopped.Err() != nil {
		return context.Canceled
	}
	if status == nil {
		return fault.Of(errMiscounted,
			"build %s: {map} ended with fewer answers than records: %s, up to those before %s%s; "+
				"it must answer each with one line: %s", m.b.opts.Out, m.numbers(), m.where(q), m.said(), givenUp)
	}
	return fault.Errorf("build %s: {map} failed (%v): %s, up to those before %s%s; "+
		"once it is fixed, run the same command again: it resumes from its last checkpoint",
		m.b.opts.Out, status, m.numbers(), m.where(q), m.said())
}

// noObject returns the error for a line that is not an answer.
func (m *mapping) noObject(q *queued, answer []byte) error {
	return fault.Errorf("build %s: {map} answered %s with what is not a JSON object: %.*q; it must write nothing but "+
		"answers to its standard output, and the rest to stderr; "+
		"once it is fixed, run the same command again: it resumes from its last checkpoint",
		m.b.opts.Out, m.where(q), shownAnswer, answer)
}

// watch says where the command owes answers and gives none for a time.
func (m *mapping) watch(ctx context.Context, stall time.Duration) {
	tick := time.NewTicker(stall)
	defer tick.Stop()
	for had := int64(-1); ; had = m.got.Load() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if got := m.got.Load(); got == had && m.waiting.Load() {
			m.b.notice("{map} has answered %s of the %s records sent to it, and none for %v; it must answer each with one "+
				"line at once and flush its output, as print(..., flush=True) does",
				units.Count(got), units.Count(m.asked.Load()), stall)
			stall *= 2
			tick.Reset(stall)
		}
	}
}

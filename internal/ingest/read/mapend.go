package read

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/units"
)

// where names a record in errors.
func (m *Mapping) where(q *queued) string {
	return fmt.Sprintf("row %d of %s", q.Row, uris.Shown(m.URI(q.Input)))
}

// numbers says how many records the command got and answered.
func (m *Mapping) numbers() string {
	return fmt.Sprintf("it answered %s of %s records", units.Count(m.got.Load()), units.Count(m.asked.Load()))
}

// said returns the last of the command's stderr for the end of a sentence.
func (m *Mapping) said() string {
	if text := m.process.Stderr(); text != "" {
		return ", and its stderr ends with: " + text
	}
	return ", and wrote nothing to stderr"
}

// end ends the reading with what ended the sources. Where all was read, the command must end well too.
func (m *Mapping) end(err error) error {
	if err != io.EOF {
		return err
	}
	<-m.process.Ready()
	if m.stopped.Err() != nil {
		return context.Canceled
	}
	if len(m.process.Output()) > 0 {
		return m.tooMany()
	}
	if status := m.process.Wait(); m.stopped.Err() != nil {
		return context.Canceled
	} else if status != nil {
		return fault.Of(ErrCommand, "build %s: {map} answered all %s records and then failed (%v)%s", m.Out,
			units.Count(m.asked.Load()), status, m.said())
	}
	return io.EOF
}

const givenUp = "answers may belong to other records, so nothing of the unfinished build was kept; " +
	"fix it and run the same command again"

// tooMany returns the error for a command that has more output than it was asked for.
func (m *Mapping) tooMany() error {
	extra, _, _ := bytes.Cut(m.process.Output(), []byte("\n"))
	asked := m.asked.Load()
	return fault.Of(ErrMiscounted, "build %s: {map} gave more answers than the %s records it got: %s or more, the first "+
		"too many: %.*q; it must read each record and answer it with one line: %s", m.Out, units.Count(asked),
		units.Count(asked+1), shownAnswer, extra, givenUp)
}

// tooFew returns the error for a command whose answers end before the one to a record, or within it.
func (m *Mapping) tooFew(q *queued, part []byte) error {
	status := m.process.Wait()
	if m.stopped.Err() != nil {
		return context.Canceled
	}
	within := ""
	if len(part) > 0 {
		within = fmt.Sprintf(" within a line, after %.*q,", shownAnswer, part)
	}
	if status == nil {
		return fault.Of(ErrMiscounted,
			"build %s: {map} ended%s with fewer answers than records: %s, up to those before %s%s; "+
				"it must answer each with one line: %s", m.Out, within, m.numbers(), m.where(q), m.said(), givenUp)
	}
	return fault.Of(ErrCommand, "build %s: {map} failed%s (%v): %s, up to those before %s%s",
		m.Out, within, status, m.numbers(), m.where(q), m.said())
}

// watch says where the command owes answers and gives none for a time.
func (m *Mapping) watch(ctx context.Context, stall time.Duration) {
	tick := time.NewTicker(stall)
	defer tick.Stop()
	for had := int64(-1); ; had = m.got.Load() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		got, asked := m.got.Load(), m.asked.Load()
		if got == had && m.waiting.Load() && (got < asked || m.writing.Load()) {
			m.Notice("{map} has answered %s of the %s records sent to it, and none for %v; it must answer each with one "+
				"line at once and flush its output, as print(..., flush=True) does",
				units.Count(got), units.Count(asked), stall)
			stall *= 2
			tick.Reset(stall)
		}
	}
}

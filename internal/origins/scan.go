package origins

import (
	"fmt"
	"io"
)

// A Run is a number of documents that follow one another in an input at equal distances.
type Run struct {
	Name    string // the input's
	Begins  bool   // the first run of the input, or of the file
	Ordinal int64  // the first document's
	N       int64
	Record  int64 // the first document's
	Step    int64 // distance between the records of neighbours
}

// Scan reads a file of origins from its beginning to its end, and passes its runs to visit. It holds
// a page.
func Scan(r io.Reader, visit func(Run) error) error {
	magic := make([]byte, len(Magic))
	switch _, err := io.ReadFull(r, magic); {
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
		return err
	case err != nil || string(magic) != Magic:
		return fmt.Errorf("%w: it does not begin as one", ErrCorrupt)
	}
	begins := true
	for buf := make([]byte, PageBytes); ; {
		n, err := io.ReadFull(r, buf)
		if n == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		p, err := newPage(buf[:n])
		if err != nil {
			return err
		}
		if err := p.scan(begins, visit); err != nil {
			return err
		}
		begins = false
	}
}

// scan passes the runs of a page to visit.
func (p *page) scan(begins bool, visit func(Run) error) error {
	p.name = p.bytes(p.uvarint())
	begins = begins || p.record == 0
	for len(p.rest) > 0 && !p.bad {
		v := p.uvarint()
		run := Run{Begins: begins, Step: 1}
		switch kind := v & 3; kind {
		case opNext:
			run.N = int64(v >> 2)
		case opStep:
			run.Step, run.N = int64(v>>3)^-int64(v>>2&1), int64(p.uvarint())
		case opInput:
			if v>>2 > uint64(len(p.name)) {
				p.bad = true
				continue
			}
			p.name = p.name[:v>>2] + p.bytes(p.uvarint())
			p.record, begins = 0, true
		case opGap:
			p.next += int64(v >> 2)
		}
		if run.N <= 0 || p.bad {
			continue
		}
		run.Name, run.Ordinal, run.Record = p.name, p.next, p.record+run.Step
		begins = false
		if err := visit(run); err != nil {
			return err
		}
		p.next, p.record = p.next+run.N, p.record+run.Step*run.N
	}
	if p.bad {
		return fmt.Errorf("%w: a page cannot be decoded", ErrCorrupt)
	}
	return nil
}

// AddRun is Add for each document of a run, in an input.
func (w *Writer) AddRun(run Run, input int, emit func(page []byte) error) error {
	name := func() string { return run.Name }
	for ; run.N > 0; run.N-- {
		if err := w.Add(run.Ordinal, input, run.Record, name, emit); err != nil {
			return err
		}
		run.Ordinal++
		run.Record += run.Step
		if rest := run.N - 1; w.Page != nil && !w.Failed && w.Run > 0 && w.Step == run.Step {
			// The others are of the run that is pending, which takes no more of the page.
			w.Run, w.Next, w.Record = w.Run+rest, w.Next+rest, w.Record+rest*run.Step
			return nil
		}
	}
	return nil
}

package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrLimit means that an execution reached one of its Limits.
	ErrLimit = errors.New("limit of a template")
	// ErrStopped means that Options.Done was closed during an execution.
	ErrStopped = errors.New("stopped")
)

// Limits bound one execution.
type Limits struct {
	Steps  int64 // nodes, elements, and stepBytes of text
	Bytes  int64 // of all values and text that it makes
	Output int64 // bytes of its text
}

// Options is what an execution needs besides its variables.
type Options struct {
	Limits Limits
	// Now is the time for strftime_now. If it is zero, that function is not defined.
	Now time.Time
	// Done stops the execution when it is closed.
	Done <-chan struct{}
}

// A Span is a part of a text: text[Start:End].
type Span struct{ Start, End int }

// A RaisedError is an error that the template raised with raise_exception.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }

// A RunError says why an execution failed.
type RunError struct {
	Line int // of the template; 0 if it is not known
	Err  error
}

func (e *RunError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

func (e *RunError) Unwrap() error { return e.Err }

const (
	// stepBytes is how much text is searched or compared in the time of a step.
	stepBytes = 1 << 10
	// valueBytes is the memory of a value in a list, entryBytes that of one in a dict.
	valueBytes = 32
	entryBytes = 96
	scopeBytes = 96
	// maxCalls bounds the nesting of nodes and calls while a template runs, and so the stack.
	maxCalls = 1000
	// doneEvery is the number of steps between checks of Options.Done.
	doneEvery = 1 << 12
)

// markStart and markEnd surround what a generation block wrote into a value, as in a macro or a set
// block. No valid text contains these bytes.
const (
	markStart = "\xfe"
	markEnd   = "\xff"
)

// Render executes the template. It appends the text to dst and returns the spans of its generation
// blocks, in bytes from the old end of dst. An error is a *RunError, or ErrStopped; dst is then
// unchanged.
func (t *Template) Render(dst []byte, variables *Dict, o Options) (out []byte, spans []Span, used Limits, err error) {
	e := &execution{left: o.Limits, limits: o.Limits, now: o.Now, done: o.Done, until: doneEvery}
	e.out = &output{data: dst, from: len(dst), top: true}
	defer func() {
		used = Limits{o.Limits.Steps - e.left.Steps, o.Limits.Bytes - e.left.Bytes, int64(len(out) - len(dst))}
		switch r := recover().(type) {
		case nil:
		case *RunError:
			out, spans, err = dst, nil, r
			if errors.Is(r, ErrStopped) {
				err = ErrStopped
			}
		default:
			panic(r)
		}
	}()
	root := &scope{}
	for i := range variables.entries {
		if name, ok := variables.entries[i].key.(string); ok {
			root.set(name, variables.entries[i].value)
		}
	}
	e.run(t.body, &scope{parent: root})
	out, spans = e.out.finish()
	return out, spans, used, nil
}

// output is where text goes: the result, or the value of a block.
type output struct {
	data  []byte
	from  int
	top   bool
	marks bool   // data holds markStart and markEnd
	spans []Span // of generation blocks that wrote here directly
}

// finish removes the marks.
func (o *output) finish() ([]byte, []Span) {
	if !o.marks {
		return o.data, o.spans
	}
	var spans []Span
	var open []int
	direct, kept := o.spans, o.data[:o.from]
	removed := 0
	moved := make([]Span, len(direct))
	copy(moved, direct)
	next := 0 // direct spans whose borders have been moved; they do not nest
	for i := o.from; i <= len(o.data); i++ {
		at := i - o.from
		for next < 2*len(direct) {
			s := &direct[next/2]
			if next%2 == 0 && s.Start == at {
				moved[next/2].Start = at - removed
			} else if next%2 == 1 && s.End == at {
				moved[next/2].End = at - removed
				spans = append(spans, moved[next/2])
			} else {
				break
			}
			next++
		}
		if i == len(o.data) {
			break
		}
		switch o.data[i] {
		case markStart[0]:
			open = append(open, at-removed)
			removed++
		case markEnd[0]:
			if len(open) > 0 {
				spans = append(spans, Span{open[len(open)-1], at - removed})
				open = open[:len(open)-1]
			}
			removed++
		default:
			kept = append(kept, o.data[i])
		}
	}
	return kept, spans
}

// execution is one run of a template. A failure is a panic with a *RunError, which Render recovers.
type execution struct {
	left, limits Limits
	until        int64 // steps to the next check of done
	depth        int
	line         int
	out          *output
	now          time.Time
	done         <-chan struct{}
}

func (e *execution) fail(format string, args ...any) {
	panic(&RunError{e.line, fmt.Errorf(format, args...)})
}

// step charges n steps.
func (e *execution) step(n int64) {
	if e.left.Steps -= n; e.left.Steps < 0 {
		e.fail("%w: it takes more than %d steps for this record", ErrLimit, e.limits.Steps)
	}
	if e.until -= n; e.until < 0 {
		e.until = doneEvery
		select {
		case <-e.done:
			panic(&RunError{0, ErrStopped})
		default:
		}
	}
}

// charge counts n bytes for a value that is about to be made.
func (e *execution) charge(n int64) {
	if n > e.left.Bytes {
		e.fail("%w: it makes more than %d bytes of values for this record", ErrLimit, e.limits.Bytes)
	}
	e.left.Bytes -= n
	e.step(n / stepBytes)
}

func (e *execution) enter() {
	if e.depth++; e.depth > maxCalls {
		e.fail("%w: it nests deeper than %d, as a macro does that calls itself without an end", ErrLimit, maxCalls)
	}
}

func (e *execution) leave() { e.depth-- }

// write appends to the output. Text of a value is charged, text of the result has its own limit.
func (e *execution) write(s string) {
	o := e.out
	if o.top {
		if int64(len(o.data)-o.from+len(s)) > e.limits.Output {
			e.fail("%w: it writes more than %d bytes for this record", ErrLimit, e.limits.Output)
		}
		e.step(int64(len(s)) / stepBytes)
	} else {
		e.charge(int64(len(s)))
	}
	o.data = append(o.data, s...)
	o.marks = o.marks || strings.Contains(s, markStart) || strings.Contains(s, markEnd)
}

// capture calls run and returns what it wrote.
func (e *execution) capture(run func()) string {
	outer := e.out
	e.out = &output{}
	run()
	s := string(e.out.data)
	e.charge(int64(len(s)))
	e.out = outer
	return s
}

// scope holds the names of a block.
type scope struct {
	names  []string
	values []any
	parent *scope
}

func (s *scope) get(name string) (any, bool) {
	for ; s != nil; s = s.parent {
		for i, n := range s.names {
			if n == name {
				return s.values[i], true
			}
		}
	}
	return nil, false
}

func (s *scope) set(name string, value any) {
	for i, n := range s.names {
		if n == name {
			s.values[i] = value
			return
		}
	}
	s.names, s.values = append(s.names, name), append(s.values, value)
}

func (e *execution) newScope(parent *scope) *scope {
	e.charge(scopeBytes)
	return &scope{parent: parent}
}

package jinja

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrLimit means that an execution reached one of its Limits.
	ErrLimit = errors.New("limit of a template")
	// ErrStopped means that Options.Done was closed during an execution.
	ErrStopped = errors.New("stopped")
	// ErrNull means that a template writes None under Options.Strict.
	ErrNull = errors.New("it writes a null")
)

// An UndefinedError means that a template uses a value that does not exist, under Options.Strict.
type UndefinedError struct {
	Name string // a variable's, "" for an attribute or an item
	why  string
}

func (e *UndefinedError) Error() string { return e.why }

// Limits bound one execution.
type Limits struct {
	Steps  int64 // nodes, elements, and stepBytes of text
	Bytes  int64 // size of all values and text that it makes
	Output int64 // bytes of its text
}

// Options is what an execution needs besides its variables.
type Options struct {
	Limits Limits
	// Now is the time for strftime_now. If it is zero, that function is not defined.
	Now time.Time
	// Done stops the execution when it is closed.
	Done <-chan struct{}
	// Scratch is memory that executions of one goroutine share, nil for none.
	Scratch *Scratch
	// Trace is filled with what the execution did, unless it is nil.
	Trace *Trace
	// Strict makes it an error to use a value that does not exist, but to test whether it is defined or to give it a
	// default, and to write None.
	Strict bool
}

// A Span is a part of a text: text[Start:End].
type Span struct{ Start, End int }

// A RaisedError is an error that the template raised with raise_exception.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }

// A RunError says why an execution failed.
type RunError struct {
	Line int // the template's line; 0 if it is not known
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

// markStart and markEnd surround what a generation block wrote, which may be a value, as in a macro or a set
// block. No valid text contains these bytes.
const (
	markStart = "\xfe"
	markEnd   = "\xff"
)

// Render executes the template. It appends the text to dst and returns the spans of its generation
// blocks, in bytes from the old end of dst. An error is a *RunError, or ErrStopped; dst is then
// unchanged.
func (t *Template) Render(dst []byte, variables *Dict, o Options) (out []byte, spans []Span, used Limits, err error) {
	if o.Scratch == nil {
		o.Scratch = &Scratch{}
	}
	root := o.Scratch.takeScope(nil)
	for i := range variables.entries {
		if name, ok := variables.entries[i].key.(string); ok {
			if id, ok := t.ids[name]; ok { // others are never read
				root.set(id, variables.entries[i].value)
			}
		}
	}
	out, spans, used, err = t.render(dst, root, o)
	if err == nil {
		o.Scratch.release(root, t)
	}
	return out, spans, used, err
}

func (t *Template) render(dst []byte, root *scope, o Options) (out []byte, spans []Span, used Limits, err error) {
	scratch := o.Scratch
	e := &scratch.execution
	*e = execution{left: o.Limits, limits: o.Limits, now: o.Now, done: o.Done, until: doneEvery, template: t,
		trace: o.Trace, strict: o.Strict, prompt: -1, Scratch: scratch}
	scratch.output = output{data: dst, from: len(dst), top: true}
	e.out = &scratch.output
	defer func() {
		scratch.clean()
		used = Limits{o.Limits.Steps - e.left.Steps, o.Limits.Bytes - e.left.Bytes, int64(len(out) - len(dst))}
		switch r := recover().(type) {
		case nil:
		case *RunError:
			out, spans, err = dst, nil, r
			select {
			case <-o.Done: // the next run finds out what is wrong
				err = ErrStopped
			default:
			}
		default:
			panic(r)
		}
	}()
	if o.Trace != nil {
		if id, ok := t.ids[o.Trace.Prompt]; ok {
			e.prompt = id
		}
	}
	inner := e.takeScope(root)
	if e.trace == nil {
		e.run(t.body, inner)
	} else {
		e.trace.start(t)
		e.runTraced(t.body, inner)
	}
	scratch.release(inner, t)
	out, spans = e.out.finish()
	return out, spans, used, nil
}

// execution is one run of a template. A failure is a panic with a *RunError, which Render recovers.
type execution struct {
	*Scratch
	template     *Template
	trace        *Trace // nil for none
	left, limits Limits
	until        int64 // steps to the next check of done
	depth        int
	prompt       int // the id of the trace's Prompt, -1 for none
	line         int
	strict       bool
	out          *output
	now          time.Time
	done         <-chan struct{}
}

func (e *execution) fail(format string, args ...any) {
	panic(&RunError{e.line, fmt.Errorf(format, args...)})
}

func (e *execution) step(n int64) {
	e.left.Steps -= n
	if e.until -= n; e.left.Steps < 0 || e.until < 0 {
		e.halt()
	}
}

// halt ends an execution that took all of its steps, or that is to stop.
func (e *execution) halt() {
	if e.left.Steps < 0 {
		e.fail("%w: it takes more than %d steps for this record", ErrLimit, e.limits.Steps)
	}
	e.until = doneEvery
	select {
	case <-e.done:
		panic(&RunError{0, ErrStopped})
	default:
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
		e.tooDeep()
	}
}

func (e *execution) tooDeep() {
	e.fail("%w: it nests deeper than %d, as a macro does that calls itself without an end", ErrLimit, maxCalls)
}

func (e *execution) leave() { e.depth-- }

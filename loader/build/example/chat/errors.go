package chat

import (
	"errors"
	"fmt"
)

var (
	// ErrMalformed is the cause where a record is no JSON object, or a message is not made as
	// messages are.
	ErrMalformed = errors.New("malformed record")
	// ErrShape is the cause where a record holds no conversation that is known.
	ErrShape = errors.New("no conversation")
	// ErrTemplate is the cause where a template cannot be found or parsed, or fails on a record.
	ErrTemplate = errors.New("chat template")
	// ErrTooLarge is the cause where a record or its text takes more than its bounds.
	ErrTooLarge = errors.New("too large")
	// ErrStopped is returned where a template was running when the worker was stopped. The record
	// is not to blame.
	ErrStopped = errors.New("stopped")
)

// problem is a cause with a sentence of its own that still matches its sentinel.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

func problemf(kind error, format string, args ...any) *problem {
	return &problem{kind, fmt.Sprintf(format, args...)}
}

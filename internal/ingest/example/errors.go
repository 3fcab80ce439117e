package example

import (
	"errors"
)

var (
	// ErrMalformed means that a record violates its format.
	ErrMalformed = errors.New("malformed record")
	// ErrUnknownField means that a record lacks a wanted field, or has it with another type.
	ErrUnknownField = errors.New("unknown field")
	// ErrTemplate means that a template cannot be parsed or fails on a record.
	ErrTemplate = errors.New("template")
	// ErrTooLarge means that a template writes or takes more than I3 and I5 allow.
	ErrTooLarge = errors.New("too large")
	// ErrStopped means that the worker was stopped while a template ran. The record is not to
	// blame.
	ErrStopped = errors.New("stopped")
)

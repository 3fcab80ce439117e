package example

import (
	"errors"

	"github.com/dsload/dsload/internal/ingest/example/values"
)

var (
	// ErrMalformed means that a record violates its format.
	ErrMalformed = values.ErrMalformed
	// ErrUnknownField means that a record lacks a wanted field, or has it with another type.
	ErrUnknownField = errors.New("unknown field")
	// ErrTemplate means that a template cannot be parsed or fails on a record.
	ErrTemplate = errors.New("template")
	// ErrTooLarge means that a template writes or takes more than I3 and I5 allow.
	ErrTooLarge = values.ErrTooLarge
	// ErrStopped means that the worker was stopped while a template ran. The record is not to
	// blame.
	ErrStopped = errors.New("stopped")
)

package chat

import (
	"errors"

	"github.com/dsload/dsload/internal/ingest/example/values"
)

var (
	// ErrMalformed means that a record is not a JSON object, or that a message is malformed.
	ErrMalformed = values.ErrMalformed
	// ErrShape means that a record has no known form of conversation.
	ErrShape = errors.New("no conversation")
	// ErrTemplate means that a template cannot be found or parsed, or fails on a record.
	ErrTemplate = errors.New("chat template")
	// ErrTooLarge means that a record or its text exceeds a bound.
	ErrTooLarge = values.ErrTooLarge
	// ErrStopped means that the worker was stopped while a template ran. The record is not to
	// blame.
	ErrStopped = errors.New("stopped")
)

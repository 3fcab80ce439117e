// Package example turns documents into examples. A Formatter, which the workers share, makes the
// text of a record: it decodes JSON and CSV, applies the template, and replaces ill-formed UTF-8. A
// Cutter, which the flusher uses in the order of the corpus, turns ids into examples.
//
//	record -> Worker.Format -> prompt (and target) -> ids -> Cutter -> examples
//
// Ownership: a Formatter is immutable; each worker owns a Worker and the Formatted that it fills;
// the result of Format is valid until the next call.
//
// Invariants:
//
//	I1  Format's result depends only on the record and FormatOptions, and is valid UTF-8.
//	I2  Text is formatted once: the content of a field reaches the tokenizer unchanged, even if it
//	    looks like a template.
//	I3  Prompt and target together are at most 3 times the record's bytes plus Formatter.OverheadBytes.
//	I4  A template's execution ends: it takes a bounded number of steps and makes a bounded
//	    number of bytes. Both bounds depend only on the record's size and the template.
//	    Formatter.ScratchBytes returns the latter.
package example

import (
	"errors"

	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

var (
	// ErrMalformed means that a record violates its format.
	ErrMalformed = values.ErrMalformed
	// ErrTooDeep means that a record is malformed since it is nested too deep for any format.
	ErrTooDeep = values.ErrTooDeep
	// ErrUnknownField means that a record lacks a wanted field, or has it with another type.
	ErrUnknownField = errors.New("unknown field")
	// ErrTemplate means that a template cannot be parsed or fails on a record.
	ErrTemplate = errors.New("template")
	// ErrTooLarge means that a template writes or takes more than I3 and I5 allow.
	ErrTooLarge = values.ErrTooLarge
	// ErrStopped means that the worker was stopped while a template ran. The record is not to
	// blame.
	ErrStopped = jinja.ErrStopped
)

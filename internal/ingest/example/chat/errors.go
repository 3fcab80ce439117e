// Package chat turns records that hold a conversation into text, and says which parts of the text
// the assistant said.
//
//	record -> conversation (its shape) -> text by the chat template -> spans -> mask of tokens
//
// A record is a JSON object. Its shape is found by its fields (see shapes): messages as OpenAI
// writes them, ShareGPT's conversations, Alpaca's instructions, prompts with completions, and the
// chosen side of preference pairs. The template is Jinja, executed by package jinja as Python does.
//
// A Renderer is immutable and shared; each goroutine owns a Worker of it. Invariants:
//
//	I1  Text and spans depend only on the record, the template, the special tokens and the date.
//	I2  A text has at most TextFactor times the record's bytes plus Renderer.OverheadBytes.
//	I3  Renderer.ScratchBytes bounds the memory for a record besides itself and its text.
//	I4  A record without a known conversation is an error that names its fields; no message is
//	    dropped silently.
//	I5  Every turn of the assistant that is to be trained on has a span or is counted as not found.
package chat

import (
	"errors"

	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

var (
	// ErrShape means that a record has no known form of conversation.
	ErrShape = errors.New("no conversation")
	// ErrTemplate means that a template cannot be found or parsed, or fails on a record.
	ErrTemplate = errors.New("chat template")
	// ErrTooLarge means that a record or its text exceeds a bound.
	ErrTooLarge = values.ErrTooLarge
	// ErrStopped means that the worker was stopped while a template ran. The record is not to
	// blame.
	ErrStopped = jinja.ErrStopped
)

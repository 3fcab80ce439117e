package spec

import (
	"errors"
	"fmt"
)

// The kinds of errors of a tokenizer file.
var (
	ErrUnsupported = errors.New("unsupported tokenizer component")
	ErrFormat      = Sentinel("corrupt", "malformed tokenizer file")
	ErrTooLarge    = Sentinel("limit", "tokenizer too large")
	ErrMemory      = fmt.Errorf("%w for its memory limit", ErrTooLarge)
	ErrPattern     = errors.New("split pattern")
)

type sentinel struct{ kind, text string }

func (e *sentinel) Error() string { return e.text }
func (e *sentinel) Kind() string  { return e.kind }

// Sentinel returns an error for errors.Is, with a method Kind for errors.As.
func Sentinel(kind, text string) error { return &sentinel{kind, text} }

// Formatf returns an error that wraps ErrFormat.
func Formatf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// TooLargef returns an error that wraps ErrTooLarge.
func TooLargef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTooLarge, fmt.Sprintf(format, args...))
}

// Unsupportedf returns an error that wraps ErrUnsupported.
func Unsupportedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// NoTekken returns the error for a tekken.json, which wraps ErrUnsupported.
func NoTekken() error {
	return Unsupportedf("Mistral's Tekken vocabulary (tekken.json) is not read; give the tokenizer.json of the same model, " +
		"as its repository for transformers has it")
}

// NoRWKV returns the error for a vocabulary of RWKV, which wraps ErrUnsupported.
func NoRWKV() error {
	return Unsupportedf("RWKV's vocabulary, which is matched greedily from a list of Python strings, is not read; give a " +
		"model with a tokenizer.json")
}

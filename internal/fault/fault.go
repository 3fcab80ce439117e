// Package fault makes errors of values: a kind, a sentence, advice, and the option and the value that they
// are about. The program that shows an error decides how options are written; packages only name them.
//
//	kind      what the exit code of a program depends on: KindOf
//	sentence  what was attempted, where, and why it failed: a Text
//	advice    what to do next: a Text
//	option    the setting that is wrong, by its name in a dataset's settings, and its value
//
// An error of any package has a kind if it, or one that it wraps, has a method Kind() string that returns
// one of the five words below. So tokenize and shard, which import nothing of ours, have kinds too, and
// their importers find them with errors.As and an interface of this one method.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// The kinds of errors. The kind "" is a failure of the work: a disk, a network, a bug.
const (
	Usage       = "usage"       // what was asked for cannot be done
	Corrupt     = "corrupt"     // input or data is damaged, or not what it claims to be
	Limit       = "limit"       // memory, disk or another limit is too small
	Unreachable = "unreachable" // a server gave no usable answer
	Interrupted = "interrupted" // stopped from outside; the same command resumes
)

// KindOf returns the kind of an error: that of the first error in its tree that has one, in the order of
// errors.As, else what the system's errors and a context's mean.
func KindOf(err error) string {
	switch kind := kindOf(err); {
	case kind != "":
		return kind
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return Limit
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return ""
}

func kindOf(err error) string {
	if k, ok := err.(interface{ Kind() string }); ok {
		if kind := k.Kind(); kind != "" {
			return kind
		}
	}
	for _, inner := range unwrap(err) {
		if kind := kindOf(inner); kind != "" {
			return kind
		}
	}
	return ""
}

// Error is an error made of values. Its text is the option, what failed and what to do; that of Err is not
// part of it, unless an argument of What says so.
type Error struct {
	Class  string // the kind; "" if that of Err is right
	Option Option // the one that is wrong, "" if none
	Value  any    // the option's, nil to name the option alone
	What   Text   // what was attempted, where, and why it failed
	Do     Text   // what to do next
	Err    error  // for errors.Is and errors.As
}

// New returns an error of a kind, as a sentinel for errors.Is.
func New(kind, text string) error { return &Error{Class: kind, What: Plain(text)} }

// Errorf returns an error with a sentence. As for fmt.Errorf, a %w wraps an error.
func Errorf(format string, args ...any) error {
	return Kindf("", format, args...)
}

// Of returns an error that matches a sentinel, and has its kind, with a sentence of its own.
func Of(sentinel error, format string, args ...any) error {
	return &Error{What: Textf(format, args...), Err: sentinel}
}

// Kindf returns an error of a kind with a sentence. As for fmt.Errorf, a %w wraps an error.
func Kindf(kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	text := deferred(format, args)
	if text.format == "" {
		text = Plain(err.Error())
	}
	return &Error{Class: kind, What: text, Err: err}
}

// BadOption returns an error of kind Usage: what is wrong with the value of an option, and what to write
// instead. A nil value names the option alone.
func BadOption(option Option, value any, format string, args ...any) error {
	return &Error{Class: Usage, Option: option, Value: value, What: Textf(format, args...)}
}

// Advise adds to an error what to do next.
func Advise(err error, format string, args ...any) error {
	return &Error{What: Textf("%v", err), Do: Textf(format, args...), Err: err}
}

func (e *Error) Error() string { return e.Message().String() }
func (e *Error) Unwrap() error { return e.Err }

// Kind returns the kind of the error, or else of what it wraps.
func (e *Error) Kind() string {
	if e.Class != "" {
		return e.Class
	}
	return KindOf(e.Err)
}

// Message returns the error's text.
func (e *Error) Message() Text {
	text := e.What
	if e.Option != "" {
		text = Textf("%v: %v", given{e.Option, e.Value}, text)
	}
	if e.Do.format != "" {
		text = Textf("%v; %v", text, e.Do)
	}
	return text
}

// Show returns the text of any error, with the options in it written by names. An error has a method
// Message() Text or In(Names) string, or its text holds the texts of the errors that it wraps, as that of
// fmt.Errorf does.
func Show(err error, names Names) string {
	switch e := err.(type) {
	case interface{ Message() Text }:
		return e.Message().In(names)
	case interface{ In(Names) string }:
		return e.In(names)
	}
	if err == context.Canceled { // where no package has put it in words
		return "interrupted; run the same command again"
	}
	text := err.Error()
	for _, inner := range unwrap(err) {
		if was, is := inner.Error(), Show(inner, names); was != is {
			text = strings.Replace(text, was, is, 1)
		}
	}
	return text
}

// OptionOf returns the option that an error is about, "" if none.
func OptionOf(err error) Option {
	if e, ok := err.(*Error); ok && e.Option != "" {
		return e.Option
	}
	for _, inner := range unwrap(err) {
		if option := OptionOf(inner); option != "" {
			return option
		}
	}
	return ""
}

func unwrap(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	if inner := errors.Unwrap(err); inner != nil {
		return []error{inner}
	}
	return nil
}

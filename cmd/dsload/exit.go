package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Exit codes. Users rely on them.
const (
	exitDone        = 0
	exitFailed      = 1 // the work failed
	exitUsage       = 2 // wrong usage
	exitCorrupt     = 3 // input or data is corrupt
	exitLimit       = 4 // a limit stopped it: memory, disk
	exitInterrupted = 5 // stopped by a signal; the same command goes on
	exitUnreachable = 6 // the feed or a remote could not be reached
)

// coded is an error with its exit code, for errors whose type does not imply one.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// withCode returns err with an exit code. A nil err stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code, err}
}

// usagef returns an error about how the command was called, with exit code 2.
func usagef(format string, args ...any) error {
	return &coded{exitUsage, fmt.Errorf(format, args...)}
}

// errorLine returns err as one printable line: what was attempted, where, why, and what to do next.
func errorLine(err error) string {
	text := err.Error()
	if errors.Is(err, context.Canceled) { // by a signal, where no package has put it in words
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted; run the same command again")
	}
	return oneLine(strings.ReplaceAll(flagNames(text), "\n", "; "))
}

// exitCode returns the exit code for an error. Nothing else maps errors to exit codes.
func exitCode(err error) int {
	var c *coded
	switch {
	case errors.As(err, &c):
		return c.code
	case isUsage(err):
		return exitUsage
	case isLimit(err):
		return exitLimit
	case isUnreachable(err):
		return exitUnreachable
	case isCorrupt(err):
		return exitCorrupt
	case isInterrupted(err):
		return exitInterrupted
	}
	return exitFailed
}

// isBrokenPipe reports whether err means that nobody reads standard output any more. SIGPIPE
// usually ends the process first.
func isBrokenPipe(err error) bool {
	var path *fs.PathError
	return errors.Is(err, syscall.EPIPE) && errors.As(err, &path) && path.Path == os.Stdout.Name()
}

// stopGrace is how long a command may take to reach a safe point.
const stopGrace = 4 * time.Second

type ownGrace struct{}

// setOwnGrace says that the command limits its own time to stop, as a server does that drains its
// streams.
func setOwnGrace(ctx context.Context) {
	if own, ok := ctx.Value(ownGrace{}).(*atomic.Bool); ok {
		own.Store(true)
	}
}

// notifyContext returns a context that the first interrupt cancels, so that the work reaches a
// checkpoint. A second interrupt ends the process at once, which is safe: checkpoints are durable
// at any moment. The process also ends after stopGrace, because a wait in the kernel, such as for a
// writer of a pipe, ignores the context.
func notifyContext(parent context.Context, stderr io.Writer) (context.Context, context.CancelFunc) {
	own := new(atomic.Bool)
	ctx, cancel := context.WithCancel(context.WithValue(parent, ownGrace{}, own))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel() // before the message, which may block on a pipe that nobody reads
			late := time.AfterFunc(stopGrace, func() {
				if !own.Load() {
					os.Exit(exitInterrupted)
				}
			})
			defer late.Stop()
			if isTerminal(stderr) {
				fmt.Fprintln(stderr) // the terminal echoed ^C after the progress bar
			}
			what := "stopping at a safe point"
			if own.Load() {
				what = "the server stops once its streams have ended, or --drain is over"
			}
			fmt.Fprintln(stderr, "dsload: "+what+"; interrupt again to stop at once")
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dsload/dsload/internal/fault"
)

// Exit codes. Users rely on them.
const (
	exitDone        = 0
	exitFailed      = 1 // the work failed
	exitUsage       = 2 // wrong usage
	exitCorrupt     = 3 // input or data is corrupt
	exitLimit       = 4 // a limit stopped it: memory, disk
	exitInterrupted = 5 // stopped by a signal; the same command resumes
	exitUnreachable = 6 // the feed or a remote could not be reached
)

// exitCodes are those of the kinds of errors.
var exitCodes = map[string]int{fault.Usage: exitUsage, fault.Corrupt: exitCorrupt, fault.Limit: exitLimit,
	fault.Interrupted: exitInterrupted, fault.Unreachable: exitUnreachable}

// usagef returns an error about how the command was called, with exit code 2.
func usagef(format string, args ...any) error {
	return fault.Kindf(fault.Usage, format, args...)
}

// printedError is the error of a command whose message another process has printed.
type printedError struct{ code int }

func (e *printedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// errorLine returns err as one printable line: what was attempted, where, why, and what to do next. It writes
// the sizes of flags as args have them.
func errorLine(err error, args ...string) string {
	return oneLine(strings.ReplaceAll(fault.Show(err, flagNames(args)), "\n", "; "))
}

// exitCode returns the exit code for an error. Nothing else maps errors to exit codes.
func exitCode(err error) int {
	if code, ok := exitCodes[fault.KindOf(err)]; ok {
		return code
	}
	return exitFailed
}

// adviseSystem adds what to do to an error of the system about space or the folder for temporary files, where the package
// in which it happened has added nothing.
func adviseSystem(err error) error {
	const again = "run the same command again"
	path, isPath := errors.AsType[*fs.PathError](err)
	temp := filepath.Clean(os.TempDir())
	temporary := isPath && (path.Path == temp || strings.HasPrefix(path.Path, filepath.Join(temp, "dsload-")))
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case strings.Contains(err.Error(), again):
	case is(syscall.ENOSPC), is(syscall.EDQUOT):
		return fault.Advise(err, "make room there and %s", again)
	case is(syscall.EFBIG):
		return fault.Advise(err, "raise the limit on the size of files (ulimit -f) and %s", again)
	case temporary && (is(fs.ErrNotExist) || is(fs.ErrPermission) || is(syscall.EROFS)):
		return fault.Advise(err, "set TMPDIR to a writable folder and %s", again)
	}
	return err
}

// stopGrace is how long a command may take to reach a safe point.
const stopGrace = 4 * time.Second

// doubledWithin is the time in which one request may send several signals: coreutils' timeout sends one to its
// child and one to the process group.
const doubledWithin = 200 * time.Millisecond

type ownGrace struct{}

// setOwnGrace says that the command limits its own time to stop, as a server does that drains its
// streams.
func setOwnGrace(ctx context.Context) {
	if own, ok := ctx.Value(ownGrace{}).(*atomic.Bool); ok {
		own.Store(true)
	}
}

// notifyContext returns a context that the first interrupt cancels, so that the work reaches a
// checkpoint. A second interrupt, doubledWithin later, ends the process at once, which is safe: checkpoints are
// durable at any moment. The process also ends after stopGrace, because a wait in the kernel, such as for a
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
		case <-time.After(doubledWithin):
		case <-done:
			return
		}
		for len(signals) > 0 {
			<-signals
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

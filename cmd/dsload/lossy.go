package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// lossyWriter passes lines on to a writer that may block for ever, such as a pipe that nobody reads. A server must not stand still for its log: where
// the queue is full, lines are dropped and counted.
type lossyWriter struct {
	lines   chan []byte
	done    chan struct{}
	dropped atomic.Int64
}

func newLossyWriter(w io.Writer) *lossyWriter {
	l := &lossyWriter{lines: make(chan []byte, 256), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			if n := l.dropped.Swap(0); n > 0 {
				fmt.Fprintf(w, "dsload: %d lines of the log were dropped: nobody was reading\n", n)
			}
			_, _ = w.Write(line) // there is no other place to report it
		}
	}()
	return l
}

// Write takes one line; it never blocks and never fails.
func (l *lossyWriter) Write(p []byte) (int, error) {
	select {
	case l.lines <- append([]byte(nil), p...):
	default:
		l.dropped.Add(1)
	}
	return len(p), nil
}

// close writes out what waits, as far as that goes within a second. Nothing may be written afterwards.
func (l *lossyWriter) close() {
	close(l.lines)
	select {
	case <-l.done:
	case <-time.After(time.Second):
	}
}

package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// lossyWriter forwards lines to a writer that may block forever, such as a pipe that nobody reads.
// A server must not wait for its log: if the queue is full, lines are dropped and counted.
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
				fmt.Fprintf(w, "dsload: %s of the log dropped: nobody was reading\n", plural(n, "line"))
			}
			_, _ = w.Write(line) // an error has nowhere else to go
		}
	}()
	return l
}

// Write queues one line. It never blocks and never fails.
func (l *lossyWriter) Write(p []byte) (int, error) {
	select {
	case l.lines <- append([]byte(nil), p...):
	default:
		l.dropped.Add(1)
	}
	return len(p), nil
}

// close writes the queued lines, for at most a second. There must be no Write after it.
func (l *lossyWriter) close() {
	close(l.lines)
	select {
	case <-l.done:
	case <-time.After(time.Second):
	}
}

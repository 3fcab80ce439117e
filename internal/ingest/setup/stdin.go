package setup

import (
	"context"
	"io"
)

// stdinChunk is what one read of standard input asks for.
const stdinChunk = 64 << 10

// Interruptible makes reads from r end when ctx does. A read of a terminal or a pipe cannot be
// cancelled, so it runs in a goroutine of its own, which outlives the build by that one read:
// there is no way to end it before more input comes or the process ends.
type Interruptible struct {
	done <-chan struct{} // closed when the build must end
	r    io.Reader
	want chan []byte // a buffer to fill
	got  chan result
	rest []byte // read, not yet handed out
	err  error
	buf  []byte
}

type result struct {
	n   int
	err error
}

func NewInterruptible(ctx context.Context, r io.Reader) *Interruptible {
	return &Interruptible{done: ctx.Done(), r: r}
}

// Read implements io.Reader; it returns context.Canceled once the build must end.
func (i *Interruptible) Read(p []byte) (int, error) {
	if i.want == nil {
		i.want, i.got, i.buf = make(chan []byte, 1), make(chan result, 1), make([]byte, stdinChunk)
		go func() {
			for buf := range i.want {
				n, err := i.r.Read(buf)
				i.got <- result{n, err}
				if err != nil {
					return
				}
			}
		}()
	}
	if len(i.rest) == 0 && i.err == nil {
		i.want <- i.buf
		select {
		case r := <-i.got:
			i.rest, i.err = i.buf[:r.n], r.err
		case <-i.done:
			return 0, context.Canceled
		}
	}
	if len(i.rest) > 0 {
		n := copy(p, i.rest)
		i.rest = i.rest[n:]
		return n, nil
	}
	return 0, i.err
}

// Close lets the goroutine go once its read has returned.
func (i *Interruptible) Close() {
	if i.want != nil {
		close(i.want)
	}
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A stream reads the bytes of an object in order, with as many requests as that takes.
type stream struct {
	store  *Store
	object *Object
	at     int64 // of the next byte
	end    int64 // where reading stops; negative for the object's end
	learn  bool  // the first answer describes the object

	backend backend
	body    *body
	skip    int64 // bytes of the body before at, if the server sends all from the beginning
	cancel  context.CancelFunc
	tries   attempts
	opened  bool
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// read reads into p. It returns io.EOF at the end of the object, or of the part of it that is
// wanted.
func (s *stream) read(ctx context.Context, p []byte) (int, error) {
	for {
		if s.end >= 0 {
			if s.at >= s.end {
				return 0, io.EOF
			}
			p = p[:min(int64(len(p)), s.end-s.at)]
		}
		if !s.learn && s.object.Size >= 0 && s.at >= s.object.Size {
			return 0, io.EOF
		}
		n, err := s.attempt(ctx, p)
		if n > 0 {
			s.at += int64(n)
			s.tries.failed = 0
			return n, nil
		}
		switch {
		case err == nil:
			continue
		case isEOF(err):
			return 0, io.EOF
		}
		s.close()
		if err := s.tries.again(ctx, err); err != nil {
			return 0, err
		}
	}
}

// attempt reads once. It sends a request first if none is open.
func (s *stream) attempt(ctx context.Context, p []byte) (int, error) {
	if s.body == nil {
		if err := s.open(ctx); err != nil {
			return 0, err
		}
	}
	for s.skip > 0 {
		n, err := s.idleRead(ctx, p[:min(int64(len(p)), s.skip)])
		if s.skip -= int64(n); err != nil {
			return 0, s.ended(ctx, err)
		}
	}
	n, err := s.idleRead(ctx, p)
	if n > 0 || err == nil {
		return n, nil // the error will come again
	}
	return 0, s.ended(ctx, err)
}

// open requests the bytes from at on, and compares the answer with the object.
func (s *stream) open(ctx context.Context) error {
	if s.tries.store == nil {
		s.tries.store = s.store
		var err error
		if s.backend, err = s.store.backend(s.object.URI); err != nil {
			return err
		}
		s.tries.host = s.backend.host(s.object)
	}
	ctx, cancel := context.WithCancel(ctx)
	b, err := s.backend.get(ctx, s.object, s.at, s.end)
	if err != nil {
		cancel()
		return err
	}
	if err := s.accept(&b.object); err != nil {
		b.Close()
		cancel()
		return err
	}
	s.body, s.cancel, s.skip = b, cancel, s.at-b.from
	return nil
}

// accept compares an answer with the object, or takes it for the object's description.
func (s *stream) accept(now *Object) error {
	if s.learn && !s.opened {
		*s.object, s.opened = *now, true
		return nil
	}
	if err := s.object.compare(now); err != nil {
		return err
	}
	if now.Size >= 0 && s.at > now.Size {
		return &ChangedError{"size", fmt.Sprintf("at least %d bytes", s.at), fmt.Sprintf("%d bytes", now.Size)}
	}
	return nil
}

// idleRead reads from the body, and gives it up if no byte comes for too long.
func (s *stream) idleRead(ctx context.Context, p []byte) (int, error) {
	idle := s.store.policy.idle
	stalled := false
	timer := time.AfterFunc(idle, s.cancel)
	n, err := s.body.Read(p)
	if !timer.Stop() {
		stalled = true
	}
	if err != nil && stalled && n == 0 && ctx.Err() == nil {
		return 0, &Error{Kind: ErrUnreachable, retry: true, Text: fmt.Sprintf("%s has sent nothing for %s",
			s.tries.host, idle)}
	}
	return n, err
}

// ended explains the end of a body. It returns io.EOF at the end of the object, else an error after
// which another body continues.
func (s *stream) ended(ctx context.Context, err error) error {
	var own *Error
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &own):
		return own
	case isEOF(err) && s.skip == 0 && s.complete():
		return io.EOF
	case isEOF(err), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Kind: ErrUnreachable, retry: true,
			Text: fmt.Sprintf("%s closed the connection at byte %d of %s", s.tries.host, s.at, sizeText(s.object.Size))}
	}
	return transportError(err, s.tries.host)
}

// complete reports whether the body ended where the object ends. If the size is unknown, the body's
// own framing has already reported a broken connection.
func (s *stream) complete() bool {
	return s.object.Size < 0 || s.at >= s.object.Size
}

func sizeText(n int64) string {
	if n < 0 {
		return "unknown many"
	}
	return fmt.Sprint(n)
}

// close ends the request, if there is one.
func (s *stream) close() {
	if s.body == nil {
		return
	}
	s.cancel()
	s.body.Close() // it was only read
	s.body = nil
}

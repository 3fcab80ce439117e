package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dsload/dsload/internal/units"
	"github.com/zeebo/xxh3"
)

// A stream reads the bytes of an object in order, with as many requests as that takes. All of them
// are of one version. An answer that continues what was read must have the same validator, an ETag
// or a modification time; else the stream reads from its beginning again, and compares the checksum
// of what it read before.
type stream struct {
	store  *Store
	object *Object
	at     int64 // of the next byte
	end    int64 // where reading stops; negative for the object's end
	learn  bool  // the first answer describes the object
	strict bool  // what others read of the object matters too: every answer must have its validator

	backend backend
	body    *body
	skip    int64 // bytes of the body before at, if it begins earlier
	cancel  context.CancelFunc
	tries   attempts
	opened  bool

	start    int64       // where reading began
	sum      xxh3.Hasher // over the bytes from start to at
	again    xxh3.Hasher // over those of them that the body has had so far
	reread   bool        // requests begin at start
	unproven int         // answers without any progress that may have been of another version
}

// maxUnproven limits how often a stream reads from its beginning again without result: that may be far.
const maxUnproven = 3

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
			s.sum.Write(p[:n]) // never fails
			s.at += int64(n)
			s.tries.failed, s.unproven = 0, 0
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
		if early := s.start - (s.at - s.skip); early < int64(n) {
			s.again.Write(p[max(0, early):n])
		}
		if s.skip -= int64(n); s.skip == 0 && s.again.Sum128() != s.sum.Sum128() {
			return 0, s.otherContent()
		}
		if err != nil {
			return 0, s.ended(ctx, err)
		}
	}
	n, err := s.idleRead(ctx, p)
	if n > 0 || err == nil {
		return n, nil // the error will come again
	}
	return 0, s.ended(ctx, err)
}

// otherContent is the error of a body that does not begin with what was read.
func (s *stream) otherContent() error {
	text := func(h *xxh3.Hasher) string {
		sum := h.Sum128().Bytes()
		return fmt.Sprintf("checksum %x over %d bytes", sum, s.at-s.start)
	}
	return &ChangedError{"content", text(&s.sum), text(&s.again)}
}

// open requests the bytes from at on, and compares the answer with the object.
func (s *stream) open(ctx context.Context) error {
	if s.tries.store == nil {
		s.tries.store, s.start = s.store, s.at
		var err error
		if s.backend, err = s.store.backend(s.object.URI); err != nil {
			return err
		}
		s.tries.host = s.backend.host(s.object)
	}
	for {
		from := s.at
		if s.reread {
			from = s.start
		}
		ctx, cancel := context.WithCancel(ctx)
		b, err := s.backend.get(ctx, s.object, from, s.end)
		if err != nil {
			cancel()
			return err
		}
		enough, err := s.accept(b)
		if err == nil && enough {
			s.body, s.cancel, s.skip = b, cancel, s.at-b.from
			s.again.Reset()
			return nil
		}
		b.Close()
		cancel()
		if err != nil {
			return err
		}
	}
}

// accept compares an answer with the object, or takes it for the object's description. enough is
// false if it may be of another version, and does not have the bytes that would show it.
func (s *stream) accept(b *body) (enough bool, err error) {
	now := &b.object
	if s.learn && !s.opened {
		*s.object, s.opened = *now, true
		return true, nil
	}
	if err := s.object.compare(now); err != nil {
		return false, err
	}
	if now.Size >= 0 && s.at > now.Size {
		return false, &ChangedError{"size", "at least " + units.Bytes(s.at), units.Bytes(now.Size)}
	}
	identified := s.object.Identified()
	switch {
	case s.object.SameVersion(now):
		s.reread = false
		return true, nil
	case s.strict, identified && s.start > 0:
		return false, s.object.unproven()
	case s.at == s.start:
		return true, nil // it is the first one
	}
	if s.unproven++; s.unproven > maxUnproven {
		return false, &Error{Kind: ErrUnreachable,
			Text: fmt.Sprintf("%s breaks off at byte %d, and its next answers have "+
				"neither an ETag nor a time by which they could be known to continue the same file", s.tries.host,
				s.at),
			Hint: "download the file, and name the copy"}
	}
	s.reread = true
	return b.from <= s.start, nil
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
			Text: fmt.Sprintf("%s closed the connection at byte %d; its size is %s", s.tries.host, s.at,
				units.Bytes(s.object.Size))}
	}
	return transportError(err, s.tries.host)
}

// complete reports whether the body ended where the object ends. If the size is unknown, the body's
// own framing has already reported a broken connection.
func (s *stream) complete() bool {
	return s.object.Size < 0 || s.at >= s.object.Size
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

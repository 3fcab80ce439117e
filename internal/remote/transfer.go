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

// A transfer reads the bytes of an object in order, with as many requests as that takes. All of them
// are of one version. An answer that continues what was read must have the same validator, an ETag
// or a modification time; else the transfer reads from its beginning again, and compares the checksum
// of what it read before.
type transfer struct {
	store  *Store
	object *Object
	at     int64 // the next byte's offset
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

// maxUnproven limits how often a transfer reads from its beginning again without result: that may be far.
const maxUnproven = 3

// read reads into p. It returns io.EOF at the end of the object, or of the part of it that is
// wanted.
func (t *transfer) read(ctx context.Context, p []byte) (int, error) {
	for {
		if t.end >= 0 {
			if t.at >= t.end {
				return 0, io.EOF
			}
			p = p[:min(int64(len(p)), t.end-t.at)]
		}
		if !t.learn && t.object.Size >= 0 && t.at >= t.object.Size {
			return 0, io.EOF
		}
		n, err := t.attempt(ctx, p)
		if n > 0 {
			t.sum.Write(p[:n]) // never fails
			t.at += int64(n)
			t.tries.failed, t.unproven = 0, 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if err == io.EOF {
			return 0, io.EOF
		}
		t.close()
		if err := t.tries.again(ctx, err); err != nil {
			return 0, err
		}
	}
}

// attempt reads once. It sends a request first if none is open.
func (t *transfer) attempt(ctx context.Context, p []byte) (int, error) {
	if t.body == nil {
		if err := t.open(ctx); err != nil {
			return 0, err
		}
	}
	for t.skip > 0 {
		n, err := t.idleRead(ctx, p[:min(int64(len(p)), t.skip)])
		if early := t.start - (t.at - t.skip); early < int64(n) {
			t.again.Write(p[max(0, early):n])
		}
		if t.skip -= int64(n); t.skip == 0 && t.again.Sum128() != t.sum.Sum128() {
			text := func(h *xxh3.Hasher) string {
				return fmt.Sprintf("checksum %x over %d bytes", h.Sum128().Bytes(), t.at-t.start)
			}
			return 0, &ChangedError{"content", text(&t.sum), text(&t.again)}
		}
		if err != nil {
			return 0, t.ended(ctx, err)
		}
	}
	n, err := t.idleRead(ctx, p)
	if n > 0 || err == nil {
		return n, nil // the error will come again
	}
	return 0, t.ended(ctx, err)
}

// open requests the bytes from at on, and compares the answer with the object.
func (t *transfer) open(ctx context.Context) error {
	if t.tries.store == nil {
		t.tries.store, t.start = t.store, t.at
		var err error
		if t.backend, err = t.store.backend(t.object.URI); err != nil {
			return err
		}
		t.tries.host = t.backend.host(t.object)
	}
	for {
		from := t.at
		if t.reread {
			from = t.start
		}
		ctx, cancel := context.WithCancel(ctx)
		b, err := t.backend.get(ctx, t.object, from, t.end)
		if err != nil {
			cancel()
			return err
		}
		enough, err := t.accept(b)
		if err == nil && enough {
			t.body, t.cancel, t.skip = b, cancel, t.at-b.from
			t.again.Reset()
			return nil
		}
		b.Close()
		cancel()
		if err != nil {
			return err
		}
	}
}

// accept checks a response against the object, or adopts its description. It returns enough = false
// for one that cannot be told from another version's.
func (t *transfer) accept(b *body) (enough bool, err error) {
	now := &b.object
	if t.learn && !t.opened {
		*t.object, t.opened = *now, true
		return true, nil
	}
	if err := t.object.compare(now); err != nil {
		return false, err
	}
	if now.Size >= 0 && t.at > now.Size {
		return false, &ChangedError{"size", "at least " + units.Bytes(t.at), units.Bytes(now.Size)}
	}
	identified := t.object.Identified()
	switch {
	case t.object.SameVersion(now):
		t.reread = false
		return true, nil
	case t.strict, identified && t.start > 0:
		return false, t.object.unproven()
	case t.at == t.start:
		return true, nil // it is the first one
	}
	if t.unproven++; t.unproven > maxUnproven {
		return false, &Error{Kind: ErrUnreachable,
			Text: fmt.Sprintf("%s breaks off at byte %d, and its next answers have "+
				"neither an ETag nor a time by which they could be known to continue the same file", t.tries.host,
				t.at),
			Hint: "download the file, and name the copy"}
	}
	t.reread = true
	return b.from <= t.start, nil
}

// idleRead reads from the body, and gives it up if no byte comes for too long.
func (t *transfer) idleRead(ctx context.Context, p []byte) (int, error) {
	idle := t.store.policy.idle
	timer := time.AfterFunc(idle, t.cancel)
	n, err := t.body.Read(p)
	stalled := !timer.Stop()
	if err != nil && stalled && n == 0 && ctx.Err() == nil {
		return 0, &Error{Kind: ErrUnreachable, retry: true, Text: fmt.Sprintf("%s has sent nothing for %s",
			t.tries.host, idle)}
	}
	return n, err
}

// ended explains the end of a body. It returns io.EOF at the end of the object, else an error after
// which another body continues.
func (t *transfer) ended(ctx context.Context, err error) error {
	switch own, ok := errors.AsType[*Error](err); {
	case ctx.Err() != nil:
		return context.Canceled
	case ok:
		return own
	case errors.Is(err, io.EOF) && t.skip == 0 && (t.object.Size < 0 || t.at >= t.object.Size):
		return io.EOF // if the size is unknown, the body's own framing has reported a broken connection
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Kind: ErrUnreachable, retry: true,
			Text: fmt.Sprintf("%s closed the connection at byte %d; its size is %s", t.tries.host, t.at,
				units.Bytes(t.object.Size))}
	}
	return transportError(err, t.tries.host)
}

// close ends the request, if there is one.
func (t *transfer) close() {
	if t.body == nil {
		return
	}
	t.cancel()
	t.body.Close() // it was only read
	t.body = nil
}

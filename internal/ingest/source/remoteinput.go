package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/remote"
)

// Redact returns an argument as it may be shown and kept: an address without its credentials,
// anything else as it is.
func Redact(arg string) string {
	if !isAddress(arg) || strings.HasPrefix(arg, "synth://") || strings.HasPrefix(arg, "file://") {
		return arg
	}
	return remote.Redact(arg)
}

// IsRemote reports whether a URI is that of a remote file.
func IsRemote(uri string) bool {
	_, ok := remote.Scheme(uri)
	return ok
}

// remoteStore returns the store of the set's remote inputs.
func (s *Set) remoteStore() *remote.Store {
	if s.store == nil {
		s.store = remote.NewStore(remote.Options{Done: s.opts.Done, Notice: s.opts.Notice, Revision: s.opts.Revision})
		s.list.store = s.store
	}
	return s.store
}

// object describes a remote input to its store.
func (in *Input) object() remote.Object {
	return remote.Object{URI: in.URI, Size: in.Size, ETag: in.ETag, Modified: in.ModTime,
		Revision: in.Revision, Hash: in.Hash}
}

func remoteInput(o remote.Object, store *remote.Store) Input {
	return Input{URI: o.URI, Size: o.Size, ModTime: o.Modified, ETag: o.ETag, Revision: o.Revision,
		Hash: o.Hash, store: store, textBytes: -1}
}

// expandRemote adds the inputs that an address leads to; many is set for a folder or glob.
func (s *Set) expandRemote(ctx context.Context, arg string, look []byte) (many, hasText bool, err error) {
	if remote.Listable(arg) {
		return s.expandListed(ctx, arg, look)
	}
	hasText, err = s.addAddress(ctx, arg, look)
	return false, hasText, err
}

// addAddress adds the input at an address that cannot be listed.
func (s *Set) addAddress(ctx context.Context, arg string, look []byte) (hasText bool, err error) {
	store := s.remoteStore()
	object, n, err := store.Stat(ctx, arg, look[:sniffBytes])
	if err != nil {
		return false, remoteError(object.URI, -1, err)
	}
	s.answers.add(&object, look[:n])
	if remote.Insecure(arg) {
		s.note("%s was read without TLS: whoever is between could have read or changed it", object.URI)
	}
	in := remoteInput(object, store)
	in.head = look[:n]
	if hasText, err = s.add(in, look); err != nil {
		return false, err
	}
	if in, err = s.list.at(s.list.len() - 1); err == nil && in.readAtPlaces() && needsCopy(&object) {
		s.answers.copied.add(in.URI)
	}
	return hasText, err
}

// openRemote opens a remote input.
func openRemote(in *Input, r *rawFile) {
	file := in.store.Open(context.Background(), in.object()) // the store ends with the build
	r.file, r.counted.Source, r.remote = file, file, file
	if r.check = newRawCheck(in); r.check != nil {
		r.counted.Watch = r.check.add
	}
}

// remoteError returns what a failure of the remote package means for an input. offset counts its
// text; it is -1 if none was read.
func remoteError(uri string, offset int64, err error) error {
	var changed *remote.ChangedError
	var own *remote.Error
	switch {
	case errors.As(err, &changed):
		return &SourceChangedError{URI: uri, What: changed.What, Was: changed.Was, Is: changed.Is}
	case errors.Is(err, remote.ErrUsage), offset < 0 && errors.Is(err, remote.ErrNoBucket):
		return unread(remote.Redact(uri), fault.Of(cause.Usage, "%s", err))
	case errors.As(err, &own):
		return &InputError{URI: uri, Offset: offset, Err: err}
	}
	return err
}

// sumState is the state of an input's checksum in a Position.
type sumState struct {
	XXH3 []byte `json:"xxh3"`
	// of the hash that the server announced, which may be ahead: over the first CheckAt bytes
	Check   []byte `json:"check,omitempty"`
	CheckAt int64  `json:"check_at,omitempty"`
	// what identifies the version that was read
	ETag     string    `json:"etag,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	Revision string    `json:"revision,omitempty"`
}

// resumesInPlace reports whether the input of the position can be resumed there without the bytes
// before: it is remote, uncompressed, and known to be the version that was read.
func (r *Reader) resumesInPlace() bool {
	in, at := &r.in, &r.at
	if in.store == nil || in.Compression != decompress.Plain || in.archive != "" || at.Offset == 0 || at.Sums == nil {
		return false
	}
	was := remote.Object{ETag: at.Sums.ETag, Modified: at.Sums.Modified, Revision: at.Sums.Revision}
	is := in.object()
	return was.SameVersion(&is) && in.Format.layout().frames != nil
}

// jump makes the window continue at an offset of the input, whose checksum up to there is in the
// position.
func (r *Reader) jump(raw *rawFile) error {
	at := &r.at
	if !r.win.ResumeAt(at.Offset, at.Offset-r.set.origin(at.Input), at.Sum, at.Sums.XXH3) {
		return fault.Of(cause.Corrupt, "resume: the position's checksum of %s is not whole", r.in.URI)
	}
	if c := raw.check; c != nil && (at.Sums.CheckAt < at.Offset || !c.restore(at.Sums.Check, at.Sums.CheckAt)) {
		return fault.Of(cause.Corrupt, "resume: the position's hash of %s is not whole", r.in.URI)
	}
	raw.remote.SeekTo(at.Offset)
	raw.counted.N, raw.counted.Err = at.Offset, nil
	return nil
}

// isAddress reports whether an argument is an address of some kind.
func isAddress(arg string) bool {
	_, ok := remote.AnyScheme(arg)
	return ok
}

// sumState returns what restores the checksums of an input in another process, given the state of that of its
// text, nil if it is not kept.
func (r *rawFile) sumState(state []byte) *sumState {
	if state == nil {
		return nil
	}
	o := r.remote.Object()
	s := &sumState{XXH3: state, ETag: o.ETag, Modified: o.Modified, Revision: o.Revision}
	if c := r.check; c != nil {
		s.Check, s.CheckAt = c.state(), c.at
	}
	return s
}

// Repository returns the address of the repository that a remote file lies in, with its revision, ""
// where it lies in none.
func Repository(uri string) string { return remote.Repository(uri) }

package source

import (
	"context"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/remote"
)

// remoteStore returns the store of the set's remote inputs.
func (s *Set) remoteStore() *remote.Store {
	if s.store == nil {
		s.store = remote.NewStore(remote.Options{Done: s.opts.Done, Notice: s.opts.Notice, Revision: s.opts.Revision})
		s.list.store = s.store
	}
	return s.store
}

// openRemote opens a remote input.
func openRemote(in *Input, r *rawFile) {
	file := in.Store.Open(context.Background(), in.Object()) // the store ends with the build
	r.file, r.counted.Source, r.remote = file, file, file
	if r.check = newRawCheck(in); r.check != nil {
		r.counted.Watch = r.check.add
	}
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
	if in.Store == nil || in.Compression != decompress.Plain || in.archive != "" || at.Offset == 0 || at.Sums == nil {
		return false
	}
	was := remote.Object{ETag: at.Sums.ETag, Modified: at.Sums.Modified, Revision: at.Sums.Revision}
	is := in.Object()
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

package source

import (
	"fmt"
	"io"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/remote"
)

// resume moves an input that was just opened to the position.
func (r *Reader) resume(raw *rawFile) error {
	at, s := &r.at, r.open
	if at.Offset == 0 {
		return nil
	}
	in := &r.in
	origin := r.set.origin(at.Input)
	if r.win.Offset() < origin {
		if err := r.seekRange(raw, origin); err != nil {
			return r.inputError(err)
		}
	}
	if r.win.Offset() > at.Offset {
		return cause.Changed(in.URI, "content", fmt.Sprintf("a header of at most %d bytes", at.Offset), "a longer one")
	}
	if archive, ok := s.framer.(*archiveFramer); ok {
		if err := archive.seek(at); err != nil {
			return r.inputError(err)
		}
	} else if !r.win.Skip(at.Offset) {
		if err := r.win.Failed(); err != nil {
			return r.inputError(err)
		}
		return cause.Changed(in.URI, "size", fmt.Sprintf("at least %d bytes of text", at.Offset), r.win.Offset())
	}
	if sum := r.win.Sum(); sum != at.Sum && at.Offset > origin {
		return cause.Changed(in.URI, "content", fmt.Sprint("checksum ", at.Sum),
			fmt.Sprintf("%s over the first %d bytes", sum, at.Offset))
	}
	*s.place = frame.Place{Row: at.Row, Inside: at.Inside} // whatever was skipped on the way
	s.Restore(at.State)
	return nil
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

// seekRange moves the open input to where the range begins in it, without reading what comes
// before.
func (r *Reader) seekRange(raw *rawFile, origin int64) error {
	if raw.c != decompress.Plain {
		return fault.Of(cause.Unsupported, "compressed data cannot be read from the middle")
	}
	raw.halt()
	if raw.remote != nil {
		raw.remote.SeekTo(origin)
	} else if file, ok := raw.file.(io.ReadSeeker); ok {
		if _, err := file.Seek(origin, io.SeekStart); err != nil {
			return cause.OfPath(err)
		}
		raw.counted.Source = io.LimitReader(file, r.in.Size-origin)
	} else {
		return fault.Of(cause.Unsupported, "it cannot be read from the middle")
	}
	raw.counted.N, raw.counted.Err = origin, nil
	// What was read of the beginning goes, and what is in the middle has no mark of its encoding.
	raw.ahead, raw.binary = nil, true
	r.win.Restart(origin)
	return nil
}

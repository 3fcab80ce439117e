package remote

import (
	"context"
)

const (
	// directBytes is how much is read before reading ahead begins, so that a look at a file is
	// cheap.
	directBytes = 256 << 10
	// aheadBytes is the size of the read-ahead buffer.
	aheadBytes = 2 << 20
	// FileBytes is the maximum memory of an open File.
	FileBytes = aheadBytes + 64<<10
)

// A File is an open object. Read returns its bytes from the offset given to SeekTo, ReadAt those at
// any offset. A File belongs to one goroutine.
type File struct {
	store  *Store
	object Object
	ctx    context.Context // Open's, because io.Reader has none; ends with Close
	cancel context.CancelFunc

	in        *transfer // Read's
	direct    int       // bytes that Read read before it began to read ahead
	ahead     *ahead
	lanes     []*lane   // ReadAt's, the most recently used first
	stretches []stretch // what ReadAt is expected to read, in order
	many      bool      // more stretches than lanes are read in turns
}

// Open opens an object that Stat, or an earlier process, described. It makes no request yet. The File's
// requests end with ctx.
func (s *Store) Open(ctx context.Context, o Object) *File {
	f := &File{store: s, object: o}
	f.ctx, f.cancel = s.context(ctx)
	return f
}

// Size returns the size in bytes, -1 if it is unknown.
func (f *File) Size() int64 { return f.object.Size }

// Object returns what was opened.
func (f *File) Object() Object { return f.object }

// SeekTo makes the next Read begin at an offset.
func (f *File) SeekTo(offset int64) {
	f.stopReading()
	f.in = &transfer{store: f.store, object: &f.object, at: offset, end: -1}
}

// Read implements io.Reader. Errors are *Error and *ChangedError, and context.Canceled once the
// store's Done is closed.
func (f *File) Read(p []byte) (int, error) {
	if f.store.isDone() {
		return 0, context.Canceled
	}
	if f.in == nil {
		f.SeekTo(0)
	}
	if f.ahead == nil && f.direct < directBytes {
		n, err := f.in.read(f.ctx, p)
		f.direct += n
		return n, err
	}
	if f.ahead == nil {
		f.ahead = readAhead(f.ctx, f.in)
	}
	return f.ahead.Read(p)
}

func (f *File) stopReading() {
	if f.ahead != nil {
		f.ahead.stop()
		f.ahead = nil
	}
	if f.in != nil {
		f.in.close()
		f.in = nil
	}
	f.direct = 0
}

// Close ends all requests and waits for the goroutine that reads ahead.
func (f *File) Close() error {
	f.cancel()
	f.stopReading()
	f.closeLanes()
	return nil
}

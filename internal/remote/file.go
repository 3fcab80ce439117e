package remote

import (
	"context"
	"io"
)

const (
	// directBytes is how much is read before reading ahead begins, so that a look at a file is
	// cheap.
	directBytes = 256 << 10
	// aheadBytes is the size of the read-ahead buffer.
	aheadBytes = 2 << 20
	// laneBytes is the size of a lane's buffer, and lanes the maximum number of lanes.
	laneBytes = 256 << 10
	lanes     = 4

	// FileBytes is the maximum memory of an open File.
	FileBytes = aheadBytes + 64<<10
)

// A File is an open object. Read returns its bytes from the offset given to SeekTo, ReadAt those at
// any offset. A File belongs to one goroutine.
type File struct {
	store  *Store
	object Object
	ctx    context.Context // of Open, because io.Reader has none; ends with Close
	cancel context.CancelFunc

	in     *stream // of Read
	direct int     // bytes that Read read before it began to read ahead
	ahead  *ahead
	lanes  []*lane // of ReadAt, the most recently used first
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
	f.in = &stream{store: f.store, object: &f.object, at: offset, end: -1}
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

// ReadAt implements io.ReaderAt. It is made for readers that go through a few parts of a file in
// order, one after another or in turns, such as the columns of a table. It fails if the object is
// not identified: its parts could be of several versions.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	if f.store.isDone() {
		return 0, context.Canceled
	}
	if f.ahead != nil {
		f.stopReading() // its buffer is as large as all lanes
	}
	for n < len(p) {
		if f.object.Size >= 0 && off+int64(n) >= f.object.Size {
			return n, io.EOF
		}
		l := f.lane(off + int64(n))
		m, err := l.readAt(f.ctx, p[n:], off+int64(n))
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// lane returns the lane that can read at an offset with the least effort, and moves it to the
// front.
func (f *File) lane(off int64) *lane {
	at := -1
	for i, l := range f.lanes {
		if l.holds(off) {
			at = i
			break
		}
	}
	if at < 0 && len(f.lanes) < lanes {
		f.lanes = append(f.lanes, &lane{file: f})
	}
	if at < 0 {
		at = len(f.lanes) - 1 // a new lane, or the least recently used one
	}
	l := f.lanes[at]
	copy(f.lanes[1:at+1], f.lanes[:at])
	f.lanes[0] = l
	return l
}

// Close ends all requests and waits for the goroutine that reads ahead.
func (f *File) Close() error {
	f.cancel()
	f.stopReading()
	for _, l := range f.lanes {
		l.close()
	}
	f.lanes = nil
	return nil
}

// A lane reads on from one place of a file.
type lane struct {
	file *File
	in   *stream
	buf  []byte // the bytes from start on
	from int64
	span int64 // bytes that the current request asks for
}

// firstSpan is the number of bytes that a lane requests at a new place, maxSpan the most that it
// requests after a long sequential read. Short requests reach their end, which keeps their
// connections open.
const (
	firstSpan = 256 << 10
	maxSpan   = 64 << 20
	// maxGap is the largest gap that is read and dropped rather than skipped by a new request.
	maxGap = 64 << 10
)

// holds reports whether an offset is in the lane's buffer, or follows it closely.
func (l *lane) holds(off int64) bool {
	return l.in != nil && off >= l.from && off <= l.from+int64(len(l.buf))+maxGap
}

// readAt reads some bytes, at least one.
func (l *lane) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if !l.holds(off) {
		l.close()
		l.buf, l.from, l.span = l.buf[:0], off, firstSpan/2
		l.in = &stream{store: l.file.store, object: &l.file.object, at: off, end: off, strict: true}
	}
	for off >= l.from+int64(len(l.buf)) {
		if err := l.fill(ctx); err != nil {
			return 0, err
		}
	}
	return copy(p, l.buf[off-l.from:]), nil
}

// fill replaces the buffer with the bytes that follow it.
func (l *lane) fill(ctx context.Context) error {
	if l.in.at >= l.in.end {
		l.in.close()
		l.span = min(2*l.span, maxSpan)
		l.in.end = l.in.at + l.span
		if size := l.file.object.Size; size >= 0 {
			l.in.end = min(l.in.end, size)
		}
	}
	if l.buf == nil {
		l.buf = make([]byte, 0, laneBytes)
	}
	l.from = l.in.at
	n, err := l.in.read(ctx, l.buf[:cap(l.buf)])
	l.buf = l.buf[:n]
	return err
}

func (l *lane) close() {
	if l.in != nil {
		l.in.close()
		l.in = nil
	}
}

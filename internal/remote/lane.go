package remote

import (
	"context"
	"io"
	"slices"
)

const (
	// laneBytes is the size of a lane's buffer, and lanes the maximum number of lanes. If more stretches are
	// read in turns, there are manyLanes with small buffers, which take as much together.
	laneBytes     = 256 << 10
	lanes         = 4
	manyLanes     = 16
	manyLaneBytes = lanes * laneBytes / manyLanes
	// firstSpan is the number of bytes that a lane requests at a new place, maxSpan the most that it
	// requests after a long sequential read. Short requests reach their end, which keeps their
	// connections open.
	firstSpan = 256 << 10
	maxSpan   = 64 << 20
	// maxGap is the largest gap that is read and dropped rather than skipped by a new request, and
	// maxStretchGap the largest one between stretches that are read one after another: about what comes in the
	// time that a request takes. Such a gap is also at most half as long as the stretch after it.
	maxGap        = 64 << 10
	maxStretchGap = 1 << 20
	// tailBytes is what is read at once of a file's end, where the index of the rest often is.
	tailBytes = 64 << 10
)

// A stretch is a range of a file that is expected to be read.
type stretch struct{ from, to int64 }

func (p *stretch) fits(n int64) bool { return p.to-p.from <= n }

// Expect says that ReadAt will read spans, in the order of the file, from their beginnings on: one after
// another, or in turns. It replaces what was expected before. Requests then go on to the end of a span.
func (f *File) Expect(spans [][2]int64, inTurns bool) {
	f.stretches = f.stretches[:0]
	for _, s := range spans {
		if n := len(f.stretches); n > 0 {
			last := &f.stretches[n-1]
			joined := stretch{last.from, s[1]}
			gap, most := s[0]-last.to, int64(-1)
			if !inTurns {
				most = min(maxStretchGap, (s[1]-s[0])/2)
			}
			if gap >= 0 && (gap <= most || joined.fits(laneBytes)) {
				*last = joined
				continue
			}
		}
		f.stretches = append(f.stretches, stretch{s[0], s[1]})
	}
	if many := inTurns && len(f.stretches) > lanes; many != f.many {
		f.closeLanes() // their buffers have another size
		f.many = many
	}
}

// stretchAt returns the expected stretch that an offset lies in, none if it is in none.
func (f *File) stretchAt(off int64) (p stretch) {
	i, _ := slices.BinarySearchFunc(f.stretches, off, func(p stretch, off int64) int {
		if p.to <= off {
			return -1
		}
		return 1
	})
	if i < len(f.stretches) && f.stretches[i].from <= off {
		return f.stretches[i]
	}
	return p
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
	most := lanes
	if f.many {
		most = manyLanes
	}
	at := slices.IndexFunc(f.lanes, func(l *lane) bool { return l.holds(off) })
	if at < 0 && len(f.lanes) < most {
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

func (f *File) closeLanes() {
	for _, l := range f.lanes {
		l.close()
	}
	f.lanes = nil
}

// A lane reads on from one place of a file.
type lane struct {
	file    *File
	in      *transfer
	buf     []byte // the bytes from start on
	from    int64
	span    int64   // bytes that the current request asks for
	stretch stretch // the one being read; none if it is empty
}

// holds reports whether an offset is in the lane's buffer, or follows it closely. A lane does not leave
// its stretch for another one, of which it would not know the end.
func (l *lane) holds(off int64) bool {
	if l.in == nil || off < l.from {
		return false
	}
	end := l.from + int64(len(l.buf))
	if l.stretch.to > 0 {
		return off < l.stretch.to && (off <= end+maxGap || !l.file.many && off <= end+maxStretchGap)
	}
	return off <= end+maxGap
}

// readAt reads some bytes, at least one.
func (l *lane) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if !l.holds(off) {
		l.seek(off)
	}
	for off >= l.from+int64(len(l.buf)) {
		if err := l.fill(ctx, off+int64(len(p))); err != nil {
			return 0, err
		}
	}
	return copy(p, l.buf[off-l.from:]), nil
}

// seek goes to another place. A short stretch is read from its beginning: several columns may lie in it.
func (l *lane) seek(off int64) {
	l.close()
	l.stretch = l.file.stretchAt(off)
	if size := l.file.object.Size; l.stretch.to == 0 && size >= 0 && off >= size-tailBytes {
		l.stretch = stretch{max(0, size-tailBytes), size}
	}
	if l.stretch.to > 0 && l.stretch.fits(l.bufBytes()) {
		off = l.stretch.from
	}
	l.buf, l.from, l.span = l.buf[:0], off, firstSpan/2
	l.in = &transfer{store: l.file.store, object: &l.file.object, at: off, end: off, strict: true}
}

func (l *lane) bufBytes() int64 {
	if l.file.many {
		return manyLaneBytes
	}
	return laneBytes
}

// fill replaces the buffer with the bytes that follow it. Those up to need are wanted now.
func (l *lane) fill(ctx context.Context, need int64) error {
	if l.in.at >= l.in.end {
		l.in.close()
		l.in.end = l.requestEnd(need)
	}
	if l.buf == nil {
		l.buf = make([]byte, 0, l.bufBytes())
	}
	l.from, l.buf = l.in.at, l.buf[:0]
	for {
		n, err := l.in.read(ctx, l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if err != nil {
			return err
		}
		// a request whose end fits the buffer is read to its end, which keeps its connection open
		fits := l.file.many || l.in.end-l.from <= int64(cap(l.buf))
		if l.in.at >= l.in.end || len(l.buf) == cap(l.buf) || !fits {
			return nil
		}
	}
}

// requestEnd returns where the next request ends: with the stretch, or if many are read in turns, with the
// buffer that has the last of what is wanted now.
func (l *lane) requestEnd(need int64) (end int64) {
	at, size := l.in.at, l.file.object.Size
	switch {
	case at >= l.stretch.to: // it is in none
		l.span = min(2*l.span, maxSpan)
		end = at + l.span
	case l.file.many:
		end = min(l.stretch.to, at+max(1, (need-at+manyLaneBytes-1)/manyLaneBytes)*manyLaneBytes)
	default:
		end = min(l.stretch.to, at+maxSpan)
	}
	if size >= 0 {
		end = min(end, size)
	}
	return end
}

func (l *lane) close() {
	if l.in != nil {
		l.in.close()
		l.in = nil
	}
}

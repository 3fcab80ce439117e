package frame

import (
	"io"
	"math"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
)

// A Window is the unread part of an input that is in memory. What is consumed passes through a
// checksum, so that Sum covers exactly the bytes before Offset, however large the reads were. Reset comes
// before all other methods.
type Window struct {
	src    io.Reader
	blocks Blocks // src, if that has its bytes in memory
	own    []byte // the window's memory
	buf    []byte // own or a block; buf[r:w] is unread, buf[hashed:r] consumed but not in the checksum
	r, w   int
	hashed int
	base   int64 // offset of buf[0] in the input
	max    int   // largest size of buf
	err    error // why src ended; nil before its end, io.EOF at its end
	limit  int64 // the offset at which the window ends, as if the input did; NoLimit for none
	ahead  int   // bytes in buf from w on: they were read and lie after the limit

	hasher checksum.Hasher
	// sums takes the place of hasher where the state of the checksum is kept.
	sums *checksum.Resumable
	// span is over what was consumed since the last end of a span, if spanning.
	span     checksum.Hasher
	spanning bool

	pinned bool // buf[pin] is a place whose checksum may be asked for later
	pin    int
	// pinSum and pinState are the checksum at the last pin, and the state of sums there.
	pinSum   checksum.Sum
	pinState []byte
}

// Blocks is a source that has its bytes in memory: a window of short records is made of its blocks instead of copies.
type Blocks interface {
	// Keeps reports whether Next may be given n bytes.
	Keeps(n int) bool
	// Next returns keep and directly after it some bytes of the source, valid until it is read again, and what comes
	// after them.
	Next(keep []byte) ([]byte, error)
}

// Reset begins a source. The window holds chunk bytes while records are short, and largest bytes at most.
func (w *Window) Reset(src io.Reader, chunk, largest int) {
	if w.own == nil {
		w.own = make([]byte, chunk)
	}
	w.blocks, _ = src.(Blocks)
	w.src, w.buf, w.r, w.w, w.hashed, w.base, w.max, w.err = src, w.own, 0, 0, 0, 0, largest, nil
	w.limit, w.ahead = NoLimit, 0
	w.hasher.Reset()
	if w.spanning {
		w.span.Reset()
	}
	w.sums, w.pinned = nil, false
}

// Restart is a Reset to the middle of the same source, whose next byte is the one at an offset.
func (w *Window) Restart(offset int64) {
	kept := w.sums != nil
	w.Reset(w.src, len(w.own), w.max)
	w.MoveTo(offset)
	if kept {
		w.KeepState()
	}
}

// KeepState makes Unpin return the state of the checksum, for ResumeAt. It comes after Reset.
func (w *Window) KeepState() { w.sums = checksum.NewResumable() }

// ResumeAt makes the source's next byte the one at an offset, and continues the checksum over the n bytes
// before it. It returns false if that is not sum.
func (w *Window) ResumeAt(offset, n int64, sum checksum.Sum, state []byte) bool {
	if !w.sums.RestoreState(state) || w.sums.Size != uint64(n) || w.sums.Sum() != sum {
		return false
	}
	w.MoveTo(offset)
	return true
}

// MoveTo makes the source's next byte the one at an offset; what was read before is dropped.
func (w *Window) MoveTo(offset int64) {
	w.Unpin()
	w.buf, w.r, w.w, w.hashed, w.base, w.ahead, w.err = w.own, 0, 0, 0, offset, 0, nil
}

// NoLimit is the limit of a window that ends where its input does.
const NoLimit = math.MaxInt64

// SetLimit makes the window end at an offset that is not before what was consumed.
func (w *Window) SetLimit(to int64) {
	w.limit = to
	w.show(w.w + w.ahead)
}

// show divides buf[:end], which was read, at the limit.
func (w *Window) show(end int) {
	w.w = int(min(int64(end), w.limit-w.base))
	w.ahead = end - w.w
}

// limited reports whether the window ends at its limit.
func (w *Window) limited() bool { return w.base+int64(w.w) == w.limit }

// Unread returns what can be looked at without reading on.
func (w *Window) Unread() []byte { return w.buf[w.r:w.w] }

// Offset returns the offset in the input of the first unread byte.
func (w *Window) Offset() int64 { return w.base + int64(w.r) }

// Size returns how many bytes the window takes.
func (w *Window) Size() int { return len(w.buf) }

// Consume passes over the first n unread bytes.
func (w *Window) Consume(n int) { w.r += n }

// fill brings more of the input into memory. It returns false at the end of the input, after an
// error, or where the window is full. What Unread returned before is no longer valid, also then.
func (w *Window) fill() bool {
	if w.limited() || w.err != nil {
		return false
	}
	if unread := w.buf[w.r:w.w]; w.blocks != nil && w.blocks.Keeps(len(unread)) {
		w.Hash()
		data, err := w.blocks.Next(unread)
		w.moveTo(data)
		w.err = err
		w.show(len(data))
		return len(data) > len(unread)
	}
	if w.w == len(w.buf) || &w.buf[0] != &w.own[0] {
		w.makeRoom()
		if w.w == len(w.buf) {
			return false
		}
	}
	for range 100 {
		n, err := w.src.Read(w.buf[w.w:])
		if n < 0 || n > len(w.buf)-w.w {
			n, err = 0, io.ErrNoProgress
		}
		w.err = err
		if n > 0 {
			w.show(w.w + n)
			return true
		}
		if err != nil {
			return false
		}
	}
	w.err = io.ErrNoProgress
	return false
}

// makeRoom drops what was consumed, and grows to the largest size at once where that gives nothing:
// growing step by step would hold several sizes.
func (w *Window) makeRoom() {
	w.Hash()
	unread := w.buf[w.r:w.w]
	if len(unread) >= len(w.own) && len(w.own) < w.max {
		w.own = make([]byte, w.max)
	}
	w.w = copy(w.own, unread)
	w.moveTo(w.own)
}

// moveTo continues in another buffer, which begins with what is unread.
func (w *Window) moveTo(buf []byte) {
	w.base += int64(w.r)
	w.pin -= w.r
	w.buf, w.r, w.hashed = buf, 0, 0
}

// Need fills the window until n bytes are unread, and reports whether the input has as many.
func (w *Window) Need(n int) bool {
	for w.w-w.r < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

// Failed is the error that ended the input, nil at a proper end or before it.
func (w *Window) Failed() error {
	if w.err == io.EOF || w.limited() {
		return nil
	}
	return w.err
}

// Hash takes all bytes before the offset into the checksum.
func (w *Window) Hash() {
	if w.pinned && w.pin < w.r {
		w.unpin()
	}
	w.hashTo(w.r)
}

// Extend lets the window read on where its source had ended.
func (w *Window) Extend() { w.err = nil }

// NoteSpans makes the window keep a checksum over what is consumed between two calls of EndSpan.
func (w *Window) NoteSpans() {
	w.spanning = true
	w.span.Reset()
}

// EndSpan returns the checksum over what was consumed since the last call.
func (w *Window) EndSpan() checksum.Sum {
	w.Hash()
	defer w.span.Reset()
	return w.span.Sum()
}

// hashTo takes buf[:end] into the checksum.
func (w *Window) hashTo(end int) {
	if w.hashed < end {
		if p := w.buf[w.hashed:end]; w.sums != nil {
			w.sums.Write(p) // Write never fails
		} else {
			w.hasher.Write(p)
		}
		if w.spanning {
			w.span.Write(w.buf[w.hashed:end])
		}
		w.hashed = end
	}
}

// Pin notes the offset, so that Unpin finds the checksum over all bytes before it however far the window has
// moved on. It costs nothing, unlike a checksum.
func (w *Window) Pin() { w.pinned, w.pin = true, w.r }

// Unpin returns the checksum at the last Pin, and its state if that is kept.
func (w *Window) Unpin() (checksum.Sum, []byte) {
	if w.pinned {
		w.unpin()
	}
	return w.pinSum, w.pinState
}

func (w *Window) unpin() {
	w.pinned = false
	w.hashTo(w.pin)
	if w.pinSum, w.pinState = w.hashedSum(), nil; w.sums != nil {
		w.pinState = w.sums.AppendState(nil)
	}
}

// Sum returns the checksum over all bytes before the offset.
func (w *Window) Sum() checksum.Sum {
	w.Hash()
	return w.hashedSum()
}

// hashedSum returns the checksum over what was taken in.
func (w *Window) hashedSum() checksum.Sum {
	if w.sums != nil {
		return w.sums.Sum()
	}
	return w.hasher.Sum()
}

// Skip consumes bytes up to an offset and reports whether the input went on that far.
func (w *Window) Skip(to int64) bool {
	for w.Offset() < to {
		if w.r == w.w && !w.fill() {
			return false
		}
		w.Consume(int(min(int64(w.w-w.r), to-w.Offset())))
	}
	return true
}

package source

import (
	"io"
	"math"

	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/zeebo/xxh3"
)

// A window is the unread part of an input that is in memory. What is consumed passes through a
// checksum, so that sum covers exactly the bytes before offset, however large the reads were.
type window struct {
	src    io.Reader
	buf    []byte // buf[r:w] is unread, buf[hashed:r] consumed but not in the checksum
	r, w   int
	hashed int
	base   int64 // offset of buf[0] in the input
	max    int   // largest size of buf
	err    error // why src ended; nil before its end, io.EOF at its end
	limit  int64 // the offset at which the window ends, as if the input did; noLimit for none
	ahead  int   // bytes in buf from w on that were read and lie after the limit
	hasher xxh3.Hasher
	// of a plan's reader: over what was consumed since the last mark
	span     xxh3.Hasher
	spanning bool
	sums     *checksum.Resumable // in its place, where the state of the checksum is kept

	pinned   bool // buf[pin] is a place whose checksum may be asked for later
	pin      int
	pinSum   checksum.Sum // once it is no longer pinned
	pinState []byte       // of sums, once it is no longer pinned
}

func (w *window) reset(src io.Reader, limit int) {
	w.src, w.r, w.w, w.hashed, w.base, w.max, w.err = src, 0, 0, 0, 0, limit, nil
	w.limit, w.ahead = noLimit, 0
	w.hasher.Reset()
	if w.spanning {
		w.span.Reset()
	}
	w.sums, w.pinned = nil, false
}

// moveTo makes the source's next byte the one at an offset; what was read before is dropped.
func (w *window) moveTo(offset int64) {
	w.unpin()
	w.r, w.w, w.hashed, w.base, w.ahead, w.err = 0, 0, 0, offset, 0, nil
}

// noLimit is the limit of a window that ends where its input does.
const noLimit = math.MaxInt64

// setLimit makes the window end at an offset that is not before what was consumed.
func (w *window) setLimit(to int64) {
	w.limit = to
	w.show(w.w + w.ahead)
}

// show divides buf[:end], which was read, at the limit.
func (w *window) show(end int) {
	w.w = int(min(int64(end), w.limit-w.base))
	w.ahead = end - w.w
}

// limited reports whether the window ends at its limit.
func (w *window) limited() bool { return w.base+int64(w.w) == w.limit }

// unread returns what can be looked at without reading on.
func (w *window) unread() []byte { return w.buf[w.r:w.w] }

func (w *window) offset() int64 { return w.base + int64(w.r) }

func (w *window) consume(n int) { w.r += n }

// fill brings more of the input into memory. It returns false at the end of the input, after an
// error, or where the window is full. What unread returned before is no longer valid, also then.
func (w *window) fill() bool {
	if w.limited() || w.err != nil {
		return false
	}
	if w.w == len(w.buf) {
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
func (w *window) makeRoom() {
	w.hash()
	if w.r > 0 {
		w.base += int64(w.r)
		w.w = copy(w.buf, w.buf[w.r:w.w])
		w.pin -= w.r
		w.r, w.hashed = 0, 0
		return
	}
	if len(w.buf) < w.max {
		grown := make([]byte, w.max)
		w.w = copy(grown, w.buf[:w.w])
		w.buf = grown
	}
}

// need fills the window until n bytes are unread, and reports whether the input has as many.
func (w *window) need(n int) bool {
	for w.w-w.r < n {
		if !w.fill() {
			return false
		}
	}
	return true
}

// failed is the error that ended the input, nil at a proper end or before it.
func (w *window) failed() error {
	if w.err == io.EOF || w.limited() {
		return nil
	}
	return w.err
}

func (w *window) hash() {
	if w.pinned && w.pin < w.r {
		w.unpin()
	}
	w.hashTo(w.r)
}

// hashTo takes buf[:end] into the checksum.
func (w *window) hashTo(end int) {
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

// setPin notes the offset, so that unpin finds the checksum over all bytes before it however far the window has
// moved on. It costs nothing, unlike a checksum.
func (w *window) setPin() { w.pinned, w.pin = true, w.r }

// unpin sets pinSum, and pinState where the state of the checksum is kept.
func (w *window) unpin() {
	if !w.pinned {
		return
	}
	w.pinned = false
	w.hashTo(w.pin)
	if w.pinSum = w.hashedSum(); w.sums != nil {
		w.pinState = w.sums.AppendState(nil)
	}
}

// sum returns the checksum over all bytes before offset.
func (w *window) sum() checksum.Sum {
	w.hash()
	return w.hashedSum()
}

// hashedSum returns the checksum over what was taken in.
func (w *window) hashedSum() checksum.Sum {
	if w.sums != nil {
		return w.sums.Sum()
	}
	return checksum.Of(&w.hasher)
}

// skip consumes bytes up to an offset and reports whether the input went on that far.
func (w *window) skip(to int64) bool {
	for w.offset() < to {
		if w.r == w.w && !w.fill() {
			return false
		}
		w.consume(int(min(int64(w.w-w.r), to-w.offset())))
	}
	return true
}

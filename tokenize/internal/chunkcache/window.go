package chunkcache

import (
	"bytes"
	"math/bits"
)

const (
	pad           = 64
	defaultWindow = 8 << 10
)

// Window holds a stretch of text while it is cut into chunks. Before the text are padding and one
// byte of history, after it more padding, so that 64-byte loads anywhere in the text stay inside
// the buffer.
//
// An engine appends text with Free and Commit, marks it with Classify, adjusts the masks, finds the
// last cut, and lets Emit encode and remove everything before it. The window grows for text without
// a cut; Reset undoes that.
type Window struct {
	buf    []byte // pad + text + pad
	n      int    // bytes of text
	hasNUL bool

	// Cut has a bit for each offset where one chunk may end and the next begin; Gap has one for
	// each byte outside chunks; NonASCII has one for each byte from 0x80.
	Cut, Gap, NonASCII []uint64

	starts, ends []uint64
}

// NewWindow returns an empty window.
func NewWindow() *Window {
	w := &Window{}
	w.resize(defaultWindow)
	return w
}

// WindowBytes is the memory of a window that has not grown.
const WindowBytes = defaultWindow + 2*pad + 5*(defaultWindow/64+2)*8

func (w *Window) resize(size int) {
	buf := make([]byte, size+2*pad)
	copy(buf[:pad], w.buf[:min(pad, len(w.buf))])
	if w.n > 0 {
		copy(buf[pad:], w.buf[pad:pad+w.n])
	}
	w.buf = buf
	words := size/64 + 2
	w.Cut, w.Gap, w.NonASCII = make([]uint64, words), make([]uint64, words), make([]uint64, words)
	w.starts, w.ends = make([]uint64, words), make([]uint64, words)
}

// Reset empties the window and sets the byte that precedes its text.
func (w *Window) Reset(history byte) {
	if len(w.buf) > defaultWindow+2*pad {
		w.n = 0
		w.resize(defaultWindow)
	}
	w.n = 0
	w.hasNUL = false
	w.buf[pad-1] = history
}

// Len returns the length of the text in bytes.
func (w *Window) Len() int { return w.n }

// Text returns the text, valid until the next Free, Emit or Reset.
func (w *Window) Text() []byte { return w.buf[pad : pad+w.n] }

// text is Text including the padding after it.
func (w *Window) text() []byte { return w.buf[pad:] }

// Before returns the byte before offset i, which may be the history.
func (w *Window) Before(i int) byte { return w.buf[pad+i-1] }

// Free returns room for more text, and grows the window if none is left. The caller writes there
// and calls Commit.
func (w *Window) Free() []byte {
	size := len(w.buf) - 2*pad
	if w.n == size {
		w.resize(2 * size)
		size *= 2
	}
	return w.buf[pad+w.n : pad+size]
}

// Commit appends the first n bytes of what Free returned.
func (w *Window) Commit(n int) {
	if !w.hasNUL && bytes.IndexByte(w.buf[pad+w.n:pad+w.n+n], 0) >= 0 {
		w.hasNUL = true
	}
	w.n += n
}

// Truncate drops the text after offset n.
func (w *Window) Truncate(n int) { w.n = n }

// advance drops the first n bytes of text, at least one; the last of them becomes history.
func (w *Window) advance(n int) {
	w.buf[pad-1] = w.buf[pad+n-1]
	copy(w.buf[pad:], w.buf[pad+n:pad+w.n])
	w.n -= n
	if w.hasNUL {
		w.hasNUL = bytes.IndexByte(w.Text(), 0) >= 0
	}
}

// Words returns the number of mask words that cover the text.
func (w *Window) Words() int { return (w.n + 63) / 64 }

// finish turns cuts and gaps into the beginnings and ends of chunks. A chunk may begin at offset 0,
// and one may end at the end of the text, which is not empty.
func (w *Window) finish() {
	words := w.Words()
	prev := uint64(1) // no chunk reaches back past offset 0
	cut, gap := w.Cut[:words], w.Gap[:words]
	starts, ends := w.starts[:words], w.ends[:words]
	for i := range cut {
		g := gap[i]
		before := g<<1 | prev
		prev = g >> 63
		starts[i] = ^g & (before | cut[i])
		ends[i] = ^before & (g | cut[i])
	}
	w.ends[words] = 0
	if r := w.n & 63; r != 0 {
		w.starts[words-1] &= 1<<r - 1
		w.ends[words-1] &= 1<<r - 1
		if w.Gap[words-1]>>(r-1)&1 == 0 {
			w.ends[words-1] |= 1 << r
		}
	} else if w.Gap[words-1]>>63 == 0 {
		w.ends[words] = 1
	}
	// Offset 0 ends nothing.
	w.ends[0] &^= 1
}

// LastCut returns the largest offset in (0, limit] at which a chunk ends or a gap begins or
// continues, 0 if there is none. Everything before it can be emitted, whatever follows. limit must
// be less than Len. It needs the masks only.
func (w *Window) LastCut(limit int) int {
	for i := limit / 64; i >= 0; i-- {
		m := w.Cut[i] | w.Gap[i]
		if i == limit/64 {
			m &= 2<<(limit&63) - 1
		}
		if i == 0 {
			m &^= 1
		}
		if m != 0 {
			return i*64 + 63 - bits.LeadingZeros64(m)
		}
	}
	return 0
}

// Tables classify ASCII bytes: there is a cut between x and y where From[x] & To[y] == 0. Other
// bytes have all of the lower seven bits set in both. The top bit of To[y] marks y as a gap; it is
// never set in From.
type Tables struct {
	From, To [128]byte
}

// Classify sets Cut, Gap and NonASCII for the whole text.
func (w *Window) Classify(t *Tables) {
	words := w.Words()
	if words == 0 {
		return
	}
	classify(w, t, words)
	if r := w.n & 63; r != 0 {
		m := uint64(1)<<r - 1
		w.Cut[words-1] &= m
		w.Gap[words-1] &= m
		w.NonASCII[words-1] &= m
	}
}

const lowerSeven = 0x7F

func (t *Tables) from(b byte) byte {
	if b < 0x80 {
		return t.From[b]
	}
	return lowerSeven
}

// classifyGo is the plain twin of the classify kernels.
func classifyGo(w *Window, t *Tables, words int) {
	buf := w.buf[pad-1:]
	for i := range words {
		b := buf[i*64 : i*64+65]
		var cut, gap, non uint64
		from := t.from(b[0])
		for j, y := range b[1:] {
			to := uint8(lowerSeven)
			if y < 0x80 {
				to = t.To[y]
			} else {
				non |= 1 << (j & 63)
			}
			if from&to == 0 {
				cut |= 1 << (j & 63)
			}
			gap |= uint64(to>>7) << (j & 63)
			from = t.from(y)
		}
		w.Cut[i], w.Gap[i], w.NonASCII[i] = cut, gap, non
	}
}

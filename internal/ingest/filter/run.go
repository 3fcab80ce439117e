package filter

import "slices"

const (
	// blockBytes is how much of a run is read to find an entry, and blockEntries what it holds.
	blockBytes   = 4096
	blockEntries = blockBytes / entryBytes
	fenceBytes   = 4
	// mergeBytes is how much of a run is read or written at a time when runs are merged.
	mergeBytes = 8 * blockBytes
)

// A run is a sorted list of entries in a scratch file.
type run struct {
	at      int64 // in the file
	entries int
	stride  int      // entries from one fence to the next, in whole blocks
	fences  []uint32 // the highest bits of the entry at each fence
}

// block is what is read of a run to find an entry.
type block [blockBytes]byte

// load reads the entries from one on, as many as there are or as buf has room for.
func (r *run) load(file *scratch, buf []byte, from int) ([]byte, error) {
	data := buf[:min(len(buf), (r.entries-from)*entryBytes)]
	return data, file.readAt(data, r.at+int64(from)*entryBytes)
}

// find returns the second word of an entry with this first word whose second word agrees with second in
// the bits of mask.
func (r *run) find(file *scratch, b *block, first, second, mask uint64) (value uint64, found bool, err error) {
	if r.entries == 0 {
		return 0, false, nil
	}
	fence, _ := slices.BinarySearch(r.fences, uint32(first>>32)) // entries before the one before it are smaller
	from, to := max(0, fence-1)*r.stride, min(r.entries, (fence+1)*r.stride)
	for to-from > 2*blockEntries { // where fences are far apart
		middle := from + (to-from)/2/blockEntries*blockEntries
		data, err := r.load(file, b[:], middle)
		if err != nil {
			return 0, false, err
		}
		if getEntry(data).first < first {
			from = middle
		} else {
			to = middle + blockEntries
		}
	}
	for ; from < r.entries; from += blockEntries {
		data, err := r.load(file, b[:], from)
		if err != nil {
			return 0, false, err
		}
		for ; len(data) > 0; data = data[entryBytes:] {
			switch e := getEntry(data); {
			case e.first > first:
				return 0, false, nil
			case e.first == first && (e.second^second)&mask == 0:
				return e.second, true, nil
			}
		}
	}
	return 0, false, nil
}

// blocks are entries in order, as a run has them, which come in pieces. The end is an empty piece.
type blocks interface{ next() ([]byte, error) }

func (r *run) entriesOf(file *scratch) *runReader { return &runReader{file: file, run: r} }

type runReader struct {
	file *scratch
	run  *run
	from int // the entry after those in memory
	buf  [mergeBytes]byte
}

func (r *runReader) next() ([]byte, error) {
	if r.from >= r.run.entries {
		return nil, nil
	}
	data, err := r.run.load(r.file, r.buf[:], r.from)
	r.from += len(data) / entryBytes
	return data, err
}

// memoryReader has entries of the table.
type memoryReader struct {
	rest []entry
	buf  [mergeBytes]byte
}

func (r *memoryReader) next() ([]byte, error) {
	n := min(len(r.rest), len(r.buf)/entryBytes)
	for i, e := range r.rest[:n] {
		putEntry(r.buf[i*entryBytes:], e)
	}
	r.rest = r.rest[n:]
	return r.buf[:n*entryBytes], nil
}

// A runWriter writes a run of a known length.
type runWriter struct {
	file *scratch
	run
	buf  [mergeBytes]byte
	held int // bytes in buf
	n    int // entries before those
}

// newRunWriter returns a writer of n entries at a place of the file, with up to most fences.
func newRunWriter(file *scratch, at int64, n, most int) *runWriter {
	blocks := (n + blockEntries - 1) / blockEntries
	stride := max(1, (blocks+most-1)/most) * blockEntries
	return &runWriter{file: file, run: run{at: at, entries: n, stride: stride,
		fences: make([]uint32, 0, n/stride+1)}}
}

// merge writes the entries of both in order.
func (w *runWriter) merge(a, b blocks) error {
	x, err := a.next()
	if err != nil {
		return err
	}
	y, err := b.next()
	for err == nil && (len(x) > 0 || len(y) > 0) {
		fromX, fromY := w.mergeSome(x, y)
		if x = x[fromX:]; len(x) == 0 && fromX > 0 {
			if x, err = a.next(); err != nil {
				return err
			}
		}
		if y = y[fromY:]; len(y) == 0 && fromY > 0 {
			if y, err = b.next(); err != nil {
				return err
			}
		}
		if w.held == len(w.buf) {
			err = w.flush()
		}
	}
	return err
}

// mergeSome takes entries of both until one has no more or the buffer is full, and returns how many bytes of each.
// If one has none, it takes those of the other.
func (w *runWriter) mergeSome(x, y []byte) (fromX, fromY int) {
	held := w.held
	for held < len(w.buf) && fromX < len(x) && fromY < len(y) {
		a, b := getEntry(x[fromX:]), getEntry(y[fromY:])
		if a.before(b) {
			putEntry(w.buf[held:], a)
			fromX += entryBytes
		} else {
			putEntry(w.buf[held:], b)
			fromY += entryBytes
		}
		held += entryBytes
	}
	switch {
	case len(x) == 0:
		fromY = copy(w.buf[held:], y)
		held += fromY
	case len(y) == 0:
		fromX = copy(w.buf[held:], x)
		held += fromX
	}
	w.held = held
	return fromX, fromY
}

// flush writes what is in the buffer, which is full but for the last time, and notes its fences.
func (w *runWriter) flush() error {
	for i := len(w.fences)*w.stride - w.n; i < w.held/entryBytes; i += w.stride {
		w.fences = append(w.fences, uint32(getEntry(w.buf[i*entryBytes:]).first>>32))
	}
	err := w.file.writeAt(w.buf[:w.held], w.at+int64(w.n)*entryBytes)
	w.n += w.held / entryBytes
	w.held = 0
	return err
}

func (w *runWriter) finish() (run, error) {
	err := w.flush()
	return w.run, err
}

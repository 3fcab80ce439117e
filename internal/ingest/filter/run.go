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

// entriesOf returns the entries of a run in order.
func (r *run) entriesOf(file *scratch) *runReader { return &runReader{file: file, run: r} }

type runReader struct {
	file *scratch
	run  *run
	from int    // the entry after those in memory
	rest []byte // those in memory
	buf  [mergeBytes]byte
}

func (r *runReader) next() (e entry, more bool, err error) {
	if len(r.rest) == 0 {
		if r.from >= r.run.entries {
			return e, false, nil
		}
		if r.rest, err = r.run.load(r.file, r.buf[:], r.from); err != nil {
			return e, true, err
		}
		r.from += len(r.rest) / entryBytes
	}
	e, r.rest = getEntry(r.rest), r.rest[entryBytes:]
	return e, true, nil
}

// A runWriter writes a run of a known length.
type runWriter struct {
	file *scratch
	run
	buf  [mergeBytes]byte
	held int // bytes in buf
	n    int // entries
	left int // entries before the next fence
}

// newRunWriter returns a writer of n entries at a place of the file, with up to most fences.
func newRunWriter(file *scratch, at int64, n, most int) *runWriter {
	blocks := (n + blockEntries - 1) / blockEntries
	stride := max(1, (blocks+most-1)/most) * blockEntries
	return &runWriter{file: file, run: run{at: at, entries: n, stride: stride,
		fences: make([]uint32, 0, n/stride+1)}}
}

func (w *runWriter) add(e entry) error {
	if w.left == 0 {
		w.fences = append(w.fences, uint32(e.first>>32))
		w.left = w.stride
	}
	w.left--
	putEntry(w.buf[w.held:], e)
	w.n++
	if w.held += entryBytes; w.held < len(w.buf) {
		return nil
	}
	return w.flush()
}

func (w *runWriter) flush() error {
	err := w.file.writeAt(w.buf[:w.held], w.at+int64(w.n)*entryBytes-int64(w.held))
	w.held = 0
	return err
}

func (w *runWriter) finish() (run, error) { return w.run, w.flush() }

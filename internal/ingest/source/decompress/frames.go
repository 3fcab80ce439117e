package decompress

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/klauspost/compress/zstd"
)

// A file of many zstd frames, or of the gzip members that bgzip writes, says where each ends: its frames are found
// without decompressing them, and runs of them are decompressed beside each other. What cannot be found so, or is
// damaged, is read by one decompressor from there to the end of the file, as the whole would be without this file.

const (
	// runBytes is the least that is decompressed at once, in bytes of the file, and frameBytes the longest frame that is
	// searched for its end.
	runBytes   = 128 << 10
	frameBytes = 16 << 20
)

// Frames finds the runs of frames of a file.
type Frames struct {
	c            Compression
	file         io.ReaderAt
	size, window int64
	check        func() error // is the file still the one that was opened?

	mu    sync.Mutex
	at    int64         // the runs before it were found
	found int           // how many
	runs  map[int]run   // those that nobody took yet, by their numbers
	head  [4 << 10]byte // bytes of the file, and where they begin
	begin int64
	have  int
}

// A run is whole frames of a file, or all that it has from an offset on.
type run struct{ from, to int64 }

// FindFrames returns the runs of a file, nil where it has only one. Its decompressors take a window each, and at the end
// of the file the last one calls check.
func FindFrames(c Compression, file io.ReaderAt, size, window int64, check func() error) *Frames {
	if size < AheadFrom || c != Zstd && c != Gzip {
		return nil
	}
	f := &Frames{c: c, file: file, size: size, window: window, check: check, runs: map[int]run{}}
	if first := f.runFrom(0); first == size {
		return nil
	}
	return f
}

// take returns a run by its number, counted from 0; ok is false if there is none.
func (f *Frames) take(k int) (r run, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.found <= k && f.at < f.size {
		to := f.runFrom(f.at)
		f.runs[f.found] = run{f.at, to}
		f.at = to
		f.found++
	}
	r, ok = f.runs[k]
	delete(f.runs, k)
	return r, ok
}

// runFrom returns where a run ends: where another frame is found, or at the end of the file.
func (f *Frames) runFrom(from int64) int64 {
	frameEnd := f.memberEnd
	if f.c == Zstd {
		frameEnd = f.zstdEnd
	}
	for to := from; to < f.size; {
		next := frameEnd(to)
		if next <= to || next > f.size {
			break
		}
		if to-from >= runBytes {
			return to
		}
		to = next
	}
	return f.size
}

// bytes returns n bytes of the file, or those up to its end.
func (f *Frames) bytes(at int64, n int) []byte {
	if at < f.begin || at+int64(n) > f.begin+int64(f.have) {
		f.begin = at
		f.have, _ = f.file.ReadAt(f.head[:min(int64(len(f.head)), max(0, f.size-at))], at) // decompressing meets the error again
	}
	p := f.head[at-f.begin : f.have]
	return p[:min(n, len(p))]
}

// zstdEnd returns where the zstd frame ends that begins at an offset, 0 if it does not show.
func (f *Frames) zstdEnd(at int64) int64 {
	var h zstd.Header
	if h.Decode(f.bytes(at, zstd.HeaderMaxSize)) != nil {
		return 0
	}
	to := at + int64(h.HeaderSize)
	if h.Skippable {
		return to + int64(h.SkippableSize)
	}
	for to-at <= frameBytes {
		b := f.bytes(to, 3)
		if len(b) < 3 {
			return 0
		}
		const repeated, reserved = 1, 3
		header := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
		stored := header >> 3
		switch header >> 1 & 3 {
		case repeated:
			stored = 1
		case reserved:
			return 0
		}
		if to += 3 + stored; header&1 == 0 {
			continue // it is not the last one
		}
		if h.HasCheckSum {
			to += 4
		}
		return to
	}
	return 0
}

// memberEnd returns where the gzip member ends that begins at an offset, 0 if it does not say so as bgzip's do.
func (f *Frames) memberEnd(at int64) int64 {
	const head = "\x1f\x8b\x08\x04" // deflate, with an extra field
	b := f.bytes(at, 18)
	if len(b) < 18 || string(b[:len(head)]) != head || string(b[10:16]) != "\x06\x00BC\x02\x00" {
		return 0
	}
	return at + int64(binary.LittleEndian.Uint16(b[16:])) + 1
}

// Sources returns n sources that decompress the runs of a file in turns, and what closes them.
func (f *Frames) Sources(n int) ([]Source, func()) {
	sources, readers := make([]Source, n), make([]*runReader, n)
	for i := range sources {
		r := &runReader{Frames: f, next: i, step: n}
		readers[i], sources[i] = r, Source{r, func() int64 { return r.counted.N }}
	}
	return sources, func() {
		for _, r := range readers {
			r.close()
		}
	}
}

// A runReader decompresses every step-th run.
type runReader struct {
	*Frames
	next, step int // the number of the next run
	run
	begun   bool
	given   int64 // bytes of the run's text so far
	counted Counted
	text    io.Reader // kept for the next run
	closing func()
}

func (r *runReader) Read(p []byte) (int, error) {
	if !r.begun {
		var some bool
		if r.run, some = r.take(r.next); !some {
			return 0, io.EOF // the last one is another source's
		}
		r.next += r.step
		if err := r.open(); err != nil {
			return 0, r.again()
		}
	}
	n, err := r.text.Read(p)
	r.given += int64(n)
	switch {
	case err == nil:
	case r.to == r.size:
		err = cause.OfPath(Explain(r.c, err, &r.counted, r.window))
	case err == io.EOF:
		r.begun, err = false, errTurn
	default:
		err = r.again()
	}
	return n, err
}

// open opens the decompressor of a run.
func (r *runReader) open() (err error) {
	r.counted = Counted{Source: io.NewSectionReader(r.file, r.from, r.to-r.from), N: r.from}
	if r.begun, r.given = true, 0; r.to == r.size {
		r.counted.Check = r.check
	}
	if r.to-r.from > frameBytes+runBytes {
		cputime.Label("file") // the others have nothing to do any more
	}
	if again, ok := r.text.(interface{ reset(src *Counted) error }); ok {
		return again.reset(&r.counted)
	}
	r.text, r.closing, err = Open(r.c, &r.counted, r.window)
	return err
}

// again reads from where the run began to the end of the file, and passes over the text that was given: what is wrong
// with it is then found where, and as, one decompressor of the whole finds it.
func (r *runReader) again() error {
	given := r.given
	r.to = r.size
	err := r.open()
	if err == nil {
		_, err = io.CopyN(io.Discard, r.text, given)
		err = unexpected(err)
	}
	return cause.OfPath(Explain(r.c, err, &r.counted, r.window))
}

func (r *runReader) close() {
	if r.closing != nil {
		r.closing()
	}
}

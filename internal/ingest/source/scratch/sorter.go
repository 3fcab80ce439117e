package scratch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"slices"
)

const (
	// sortBytes and sortNames are what a sorter holds before it writes a sorted run to a scratch
	// file.
	sortBytes = 1 << 20
	sortNames = 16 << 10
	// maxRuns is how many runs are merged at once; more become one first.
	maxRuns    = 64
	mergeBytes = 8 << 10 // a run's buffer while it is merged
)

// A Sorter sorts any number of names in bounded memory: an external merge sort. Names are ordered
// by their bytes; a name that is added twice comes twice.
type Sorter struct {
	Dir   string // where the scratch file goes
	names []byte // back to back
	spans []nameSpan
	file  *File
	runs  []sortedRun
	count int
}

type nameSpan struct{ start, end uint32 }

// sortedRun is a stretch of the scratch file: names in order, each after its length.
type sortedRun struct{ offset, size int64 }

// Add adds a name.
func (s *Sorter) Add(name []byte) error {
	if len(s.names)+len(name) > sortBytes || len(s.spans) == sortNames {
		if err := s.spill(); err != nil {
			return err
		}
	}
	start := len(s.names)
	s.names = append(s.names, name...)
	s.spans = append(s.spans, nameSpan{uint32(start), uint32(len(s.names))})
	s.count++
	return nil
}

func (s *Sorter) sortSpans() {
	slices.SortFunc(s.spans, func(a, b nameSpan) int {
		return bytes.Compare(s.names[a.start:a.end],
			s.names[b.start:b.end])
	})
}

// spill writes what is in memory as a run.
func (s *Sorter) spill() error {
	if len(s.runs) == maxRuns {
		if err := s.mergeRuns(); err != nil {
			return err
		}
	}
	s.sortSpans()
	w, err := s.newRun()
	if err != nil {
		return err
	}
	for _, span := range s.spans {
		if err := w.add(s.names[span.start:span.end]); err != nil {
			return err
		}
	}
	s.names, s.spans = s.names[:0], s.spans[:0]
	return w.end()
}

// mergeRuns makes one run of all.
func (s *Sorter) mergeRuns() error {
	w, err := s.newRun()
	if err != nil {
		return err
	}
	if err := s.merge(w.add); err != nil {
		return err
	}
	s.runs = s.runs[:0]
	return w.end()
}

// Each calls visit with every name in order, and then forgets them. A name is valid until visit
// returns.
func (s *Sorter) Each(visit func(name []byte) error) error {
	if len(s.runs) == 0 {
		s.sortSpans()
		for _, span := range s.spans {
			if err := visit(s.names[span.start:span.end]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.spans) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.names, s.spans = nil, nil
	return s.merge(visit)
}

func (s *Sorter) merge(visit func(name []byte) error) error {
	heads := make([]*runReader, 0, len(s.runs))
	for _, run := range s.runs {
		r := &runReader{from: s.file.section(run.offset, run.size, mergeBytes)}
		if err := r.next(); err != nil {
			return err
		}
		heads = append(heads, r)
	}
	slices.SortFunc(heads, compareHeads)
	for len(heads) > 0 {
		first := heads[0]
		if err := visit(first.name); err != nil {
			return err
		}
		err := first.next()
		if err == io.EOF {
			heads = heads[1:]
			continue
		}
		if err != nil {
			return err
		}
		at := 0
		for at+1 < len(heads) && compareHeads(heads[at+1], first) < 0 {
			heads[at] = heads[at+1]
			at++
		}
		heads[at] = first
	}
	return nil
}

func compareHeads(a, b *runReader) int { return bytes.Compare(a.name, b.name) }

// Len returns how many names were added.
func (s *Sorter) Len() int { return s.count }

// Close releases the scratch file.
func (s *Sorter) Close() error { return s.file.Close() }

// A runReader returns the names of a run in order.
type runReader struct {
	from *bufio.Reader
	name []byte
}

// next reads the next name, or returns io.EOF.
func (r *runReader) next() error {
	n, err := binary.ReadUvarint(r.from)
	if err == io.EOF {
		return err
	}
	if err == nil {
		r.name = slices.Grow(r.name[:0], int(n))[:n]
		_, err = io.ReadFull(r.from, r.name)
	}
	if err != nil {
		return ListError(err)
	}
	return nil
}

// A runWriter writes a run at the end of the scratch file.
type runWriter struct {
	s      *Sorter
	offset int64
	buf    []byte
}

func (s *Sorter) newRun() (*runWriter, error) {
	if s.file == nil {
		var err error
		if s.file, err = New(s.Dir); err != nil {
			return nil, err
		}
	}
	return &runWriter{s: s, offset: s.file.size}, nil
}

func (w *runWriter) add(name []byte) error {
	w.buf = append(binary.AppendUvarint(w.buf, uint64(len(name))), name...)
	if len(w.buf) < mergeBytes {
		return nil
	}
	return w.flush()
}

func (w *runWriter) flush() error {
	err := w.s.file.append(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *runWriter) end() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.s.runs = append(w.s.runs, sortedRun{w.offset, w.s.file.size - w.offset})
	return nil
}

// A Queue holds names in any order: a few in memory, the others in a scratch file.
type Queue struct {
	Dir    string // where the scratch file goes
	few    []string
	bytes  int
	file   *File
	unread int64 // where the names begin in the file that were not taken yet
}

const queueBytes = 256 << 10

// Push adds a name.
func (q *Queue) Push(name string) error {
	if q.bytes+len(name) < queueBytes && len(q.few) < sortNames {
		q.few, q.bytes = append(q.few, name), q.bytes+len(name)
		return nil
	}
	if q.file == nil {
		var err error
		if q.file, err = New(q.Dir); err != nil {
			return err
		}
	}
	return q.file.append(append(binary.AppendUvarint(nil, uint64(len(name))), name...))
}

// Pop takes a name out; ok is false if none is left.
func (q *Queue) Pop() (name string, ok bool, err error) {
	if len(q.few) == 0 && q.file != nil && q.unread < q.file.size {
		r := runReader{from: q.file.section(q.unread, q.file.size-q.unread, mergeBytes)}
		for len(q.few) < sortNames && q.bytes < queueBytes {
			err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return "", false, err
			}
			q.few, q.bytes = append(q.few, string(r.name)), q.bytes+len(r.name)
			q.unread += int64(len(binary.AppendUvarint(nil, uint64(len(r.name)))) + len(r.name))
		}
	}
	if len(q.few) == 0 {
		return "", false, nil
	}
	last := len(q.few) - 1
	name = q.few[last]
	q.few, q.bytes = q.few[:last], q.bytes-len(name)
	return name, true, nil
}

// Close releases the scratch file.
func (q *Queue) Close() error { return q.file.Close() }

package source

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// A scratchFile is a temporary file for what is too long for memory. Its name is removed as
// soon as it is open, so that a killed process leaves no file; where the system forbids that, Close
// removes it.
type scratchFile struct {
	file *os.File
	name string // where it must still be removed
	size int64
}

// newScratch makes a temporary file in dir, or in the system's folder for such files where dir
// cannot be written to.
func newScratch(dir string) (*scratchFile, error) {
	const pattern = ".dsload-list-*.tmp"
	file, err := os.CreateTemp(dir, pattern)
	if err != nil && dir != "" {
		var second error
		if file, second = os.CreateTemp("", pattern); second == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	s := &scratchFile{file: file}
	if os.Remove(file.Name()) != nil {
		s.name = file.Name()
	}
	return s, nil
}

// append writes p at the end.
func (s *scratchFile) append(p []byte) error {
	n, err := s.file.WriteAt(p, s.size)
	s.size += int64(n)
	if err != nil {
		return scratchError(err)
	}
	return nil
}

// section reads the n bytes from offset on, through a buffer.
func (s *scratchFile) section(offset, n int64, buffer int) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(s.file, offset, n), buffer)
}

// Close releases the file. Closing nil does nothing.
func (s *scratchFile) Close() error {
	if s == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}

func scratchError(err error) error {
	return fmt.Errorf("keep a long list of files in a temporary file: %w", err)
}

// A table is a list of byte strings in a scratch file, reached by index. It holds two buffers of
// tableBuffer bytes however long it is.
type table struct {
	data, ends *scratchFile
	rows       int
	pending    [2][]byte // of data and ends, not yet written

	mu     sync.Mutex
	window []byte // a stretch of data that was read, from offset at on
	at     int64
	marks  [2 * 8]byte
}

const tableBuffer = 64 << 10

func newTable(dir string) (*table, error) {
	data, err := newScratch(dir)
	if err != nil {
		return nil, err
	}
	ends, err := newScratch(dir)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	return &table{data: data, ends: ends}, nil
}

// add appends a row. It must not be called after the first call of row.
func (t *table) add(row []byte) error {
	t.pending[0] = append(t.pending[0], row...)
	end := t.data.size + int64(len(t.pending[0]))
	t.pending[1] = binary.LittleEndian.AppendUint64(t.pending[1], uint64(end))
	t.rows++
	if len(t.pending[0])+len(t.pending[1]) < tableBuffer {
		return nil
	}
	return t.flush()
}

func (t *table) flush() error {
	for i, f := range []*scratchFile{t.data, t.ends} {
		if len(t.pending[i]) > 0 {
			if err := f.append(t.pending[i]); err != nil {
				return err
			}
		}
		t.pending[i] = t.pending[i][:0]
	}
	return nil
}

// row calls use with row i, whose bytes are valid until use returns. Rows that are asked for in
// order are read many at a time.
func (t *table) row(i int, use func(row []byte) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.flush(); err != nil {
		return err
	}
	marks, start := t.marks[:8], int64(0)
	if i > 0 {
		marks = t.marks[:16]
	}
	if _, err := t.ends.file.ReadAt(marks, int64(i+1)*8-int64(len(marks))); err != nil {
		return scratchError(err)
	}
	if i > 0 {
		start = int64(binary.LittleEndian.Uint64(marks))
	}
	n := int(int64(binary.LittleEndian.Uint64(marks[len(marks)-8:])) - start)
	if start < t.at || start+int64(n) > t.at+int64(len(t.window)) {
		want := min(max(n, tableBuffer), int(t.data.size-start))
		if cap(t.window) < want {
			t.window = make([]byte, want)
		}
		t.window, t.at = t.window[:want], start
		if _, err := t.data.file.ReadAt(t.window, start); err != nil {
			t.window = nil
			return scratchError(err)
		}
	}
	return use(t.window[start-t.at:][:n])
}

// Close releases the files. Closing nil does nothing.
func (t *table) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.data.Close(), t.ends.Close())
}

// Package scratch keeps what is too long for memory in temporary files: lists, sorted names and queues of
// names, each behind buffers of a fixed size.
package scratch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// A File is a temporary file. Its name is removed as soon as it is open, so that a killed process leaves no
// file; where the system forbids that, Close removes it.
type File struct {
	file *os.File
	name string // "" once it was removed
	size int64
}

// New makes a temporary file in dir, or in the system's folder for such files where dir
// cannot be written to.
func New(dir string) (*File, error) {
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
	s := &File{file: file}
	if os.Remove(file.Name()) != nil {
		s.name = file.Name()
	}
	return s, nil
}

// Write implements io.Writer: it writes p at the end.
func (s *File) Write(p []byte) (int, error) {
	n, err := s.file.WriteAt(p, s.size)
	s.size += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (s *File) ReadAt(p []byte, off int64) (int, error) { return s.file.ReadAt(p, off) }

// Size returns how much was written.
func (s *File) Size() int64 { return s.size }

// Name returns the name that the file had when it was made.
func (s *File) Name() string { return s.file.Name() }

// append writes a part of a list at the end.
func (s *File) append(p []byte) error {
	if _, err := s.Write(p); err != nil {
		return ListError(err)
	}
	return nil
}

// section reads the n bytes from offset on, through a buffer.
func (s *File) section(offset, n int64, buffer int) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(s.file, offset, n), buffer)
}

// Close releases the file. Closing nil does nothing.
func (s *File) Close() error {
	if s == nil {
		return nil
	}
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}

// ListError is the error of a list that cannot be kept in a file.
func ListError(err error) error {
	return fmt.Errorf("keep a long list of files in a temporary file: %w", err)
}

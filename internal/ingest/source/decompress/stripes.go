package decompress

import (
	"io"

	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// stripeBytes is what a block of a ReadAhead has of a file.
const stripeBytes = aheadBytes - aheadRoom

// A stripe is every aheadBlocks-th block of a file that is stored as it is.
type stripe struct {
	file    io.ReaderAt
	at, end int64        // what is left of the block
	check   func() error // is the file still the one that was opened?
}

// Stripes returns what reads a file from an offset up to size on several goroutines, which together take
// ReadAheadBytes. At its end they call check.
func Stripes(file io.ReaderAt, from, size int64, check func() error) []Source {
	file = io.NewSectionReader(file, 0, size) // what is written after it meanwhile is not part of the input
	sources := make([]Source, aheadBlocks)
	for i := range sources {
		at := from + int64(i)*stripeBytes
		s := &stripe{file: file, at: at, end: at + stripeBytes, check: check}
		sources[i] = Source{s, func() int64 { return s.at }}
	}
	return sources
}

func (s *stripe) Read(p []byte) (int, error) {
	if s.at == s.end {
		s.at += (aheadBlocks - 1) * stripeBytes
		s.end = s.at + stripeBytes
	}
	n, err := s.file.ReadAt(p[:min(int64(len(p)), s.end-s.at)], s.at)
	s.at += int64(n)
	switch {
	case err == io.EOF:
		if changed := s.check(); changed != nil {
			err = changed
		}
	case err == nil && s.at == s.end:
		err = errTurn
	}
	return n, cause.OfPath(err)
}

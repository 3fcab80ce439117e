package filter

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/blake3"
)

// A keyFile is a file of keys that a finished build left.
type keyFile struct {
	path  string
	file  shardfile.File
	first uint64 // the number of its first key
}

// Load adds the keys that a finished build stored in a file of a dataset. It must be called before
// Restore and Add.
func (s *Seen) Load(path string, info shard.FileInfo) (err error) {
	key := int64(s.kind.KeyBytes())
	f, err := s.fs.OpenFile(path, 0)
	if err != nil {
		return fmt.Errorf("open the hashes of earlier documents: %w", err)
	}
	s.base = append(s.base, keyFile{path, f, s.count})
	h := blake3.New()
	if err := s.load(f, path, info.Bytes, h); err != nil {
		return err
	}
	if s.size%key != 0 || hex.EncodeToString(h.Sum(nil)) != info.BLAKE3 {
		return &shardfile.FileError{File: path, Offset: -1, Row: -1,
			Cause: fmt.Errorf("%w: it is not the file that the manifest lists", shard.ErrCorrupt)}
	}
	s.count, s.size = s.count+uint64(s.size/key), 0
	return nil
}

// key reads the key with the given number. It is valid until the next call.
func (s *Seen) key(number uint64) ([]byte, error) {
	out := s.read[:s.kind.KeyBytes()]
	if number >= s.count {
		at := int64(number-s.count) * int64(len(out))
		if written := s.size - int64(len(s.tail)); at >= written {
			return s.tail[at-written:][:len(out)], nil
		}
		_, err := s.log.ReadAt(out, at)
		return out, err
	}
	i := len(s.base) - 1
	for s.base[i].first > number {
		i--
	}
	if _, err := s.base[i].file.ReadAt(out, int64(number-s.base[i].first)*int64(len(out))); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.base[i].path, err)
	}
	return out, nil
}

// closeBase closes the files that Load opened.
func (s *Seen) closeBase() error {
	var errs []error
	for _, b := range s.base {
		errs = append(errs, b.file.Close())
	}
	s.base = nil
	return errors.Join(errs...)
}

package shard

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

const (
	// markBytes is how much of a manifest is read to see whether dsload wrote it.
	markBytes = 64
	// schemaBytes is how much of a shard is read for that: its schema comes first.
	schemaBytes = 2 << 10
)

var errFound = errors.New("found")

// HoldsBuild reports whether a folder holds a dataset, whole or damaged, an unfinished build, or parts of a
// build. It looks at names, and into manifest.json and shards alone: a damaged manifest, or none, does not make
// text of the shards beside it.
func HoldsBuild(fsys FS, dir string) bool {
	err := walkNames(fsys, dir, func(name string) error {
		head := func(n int64) []byte { return headOf(fsys, Join(dir, name), n) }
		if MarksBuild(name, func() []byte { return head(markBytes) }) ||
			IsShard(name) && bytes.Contains(head(schemaBytes), []byte(formatKey)) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// IsDataset reports whether a folder of this machine has the names of a finished dataset.
func IsDataset(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, ManifestName))
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	err = walkNames(OS(), dir, func(name string) error {
		if IsShard(name) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// MarksBuild reports whether only folders that hold a build have this file. head returns the beginning of the
// file, of which markBytes are enough.
func MarksBuild(name string, head func() []byte) bool {
	switch name {
	case checkpointName, additionCheckpointName, lockName:
		return true
	case ManifestName:
		return bytes.Contains(head(), []byte(`"format": "dsload"`))
	}
	_, ofParts := parsePartFile(name)
	return ofParts
}

// headOf returns the first n bytes of a regular file, nil where there is none.
func headOf(fsys FS, path string, n int64) []byte {
	if info, err := fsys.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.NewSectionReader(f, 0, n))
	if err != nil {
		return nil
	}
	return head
}

// OwnName reports whether a build may have made a file of this name.
func OwnName(name string) bool { return ownName(name) }

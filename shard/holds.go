package shard

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// maxHeadBytes is how much of a manifest tells that dsload wrote it.
const maxHeadBytes = 64

var errFound = errors.New("found")

// HoldsBuild reports whether a folder holds a dataset, whole or damaged, an unfinished build, or parts of a
// build. It looks at names, and into manifest.json alone.
func HoldsBuild(fsys FS, dir string) bool {
	err := walkNames(fsys, dir, func(name string) error {
		_, ofParts := parsePartFile(name)
		switch {
		case ofParts, name == checkpointName, name == additionCheckpointName, name == lockName,
			name == ManifestName && isManifest(fsys, Join(dir, name)):
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// isManifest reports whether a file begins as a manifest of dsload does.
func isManifest(fsys FS, path string) bool {
	if info, err := fsys.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := fsys.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.NewSectionReader(f, 0, maxHeadBytes))
	return err == nil && bytes.Contains(head, []byte(`"format": "dsload"`))
}

// OwnName reports whether a build may have made a file of this name.
func OwnName(name string) bool { return ownName(name) }

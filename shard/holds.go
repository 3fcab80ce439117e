package shard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// markBytes is how much of a manifest is read to see whether dsload wrote it.
	markBytes = 64
	// schemaBytes is how much of a shard is read for that: its schema comes first.
	schemaBytes = 2 << 10
	// planBytes is how much of a plan is read for that: the name of its folder may come before it.
	planBytes = 8 << 10
	planMark  = `"format": "` + PlanFormat + `"`
)

var errFound = errors.New("found")

// HoldsBuild reports whether a folder holds a dataset, whole or damaged, an unfinished build, or parts of a
// build. It looks at names, and into manifest.json and shards alone: a damaged manifest, or none, does not make
// text of the shards beside it.
func HoldsBuild(fsys FS, dir string) bool {
	err := walkNames(fsys, dir, func(name string) error {
		if marks(fsys, dir, name) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// marks reports whether a file shows that its folder holds a build.
func marks(fsys FS, dir, name string) bool {
	return MarksBuild(name, func() []byte { return headOf(fsys, Join(dir, name), markBytes) }) ||
		IsShard(name) && saysShard(fsys, Join(dir, name))
}

// saysShard reports whether a file begins as a shard.
func saysShard(fsys FS, path string) bool {
	return bytes.Contains(headOf(fsys, path, schemaBytes), []byte(formatKey))
}

// ourManifest reports whether the manifest.json of a folder is a dataset's, whole or damaged.
func ourManifest(fsys FS, dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != lockName && marks(fsys, dir, name) })
}

// ownFiles returns those of a folder's files that builds made. A file that only has the name of such a one,
// as other programs have a manifest.json or a tokenizer.json, is ErrForeign.
func ownFiles(fsys FS, dir string, names []string) (own []string, err error) {
	m, _ := ReadManifest(fsys, dir)
	claimed := slices.Contains(names, checkpointName) || slices.Contains(names, additionCheckpointName) ||
		m == nil && ourManifest(fsys, dir, names)
	for _, n := range names {
		switch {
		case m != nil && m.File(n) != nil:
		case !ownName(n):
			continue
		case !ownFile(fsys, dir, n, claimed):
			return nil, fmt.Errorf("%s: %w: %s is not dsload's", dir, ErrForeign, n)
		}
		own = append(own, n)
	}
	return own, nil
}

// ownFile reports whether a build made a file that has a build's name. claimed: in this folder, builds own
// what does not say itself what it is. In that of a finished dataset, the manifest lists all of that.
func ownFile(fsys FS, dir, name string, claimed bool) bool {
	path, base := Join(dir, name), strings.TrimSuffix(name, tempSuffix)
	if _, isPart := parsePartFile(name); isPart {
		return true
	}
	if IsShard(base) {
		info, err := fsys.Stat(path)
		return saysShard(fsys, path) || err == nil && info.Size() == 0 // its first bytes were never written
	}
	switch base {
	case lockName, checkpointName, additionCheckpointName, seenLogName:
		return true
	case ManifestName:
		return claimed || MarksBuild(ManifestName, func() []byte { return headOf(fsys, path, markBytes) })
	case PlanName:
		return bytes.Contains(headOf(fsys, path, planBytes), []byte(planMark))
	case RunName:
		data, err := readSmallFile(fsys, path, maxRunBytes)
		return claimed || err == nil && checkSeal(path, data) == nil
	}
	return claimed
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

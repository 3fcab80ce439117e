package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

const (
	// markBytes is how much of a manifest is read to see whether dsload wrote it.
	markBytes = 64
	// schemaBytes is how much of a shard is read for that: its schema comes first.
	schemaBytes = 2 << 10
	// planBytes is how much of a plan is read for that: the name of its folder may come before it.
	planBytes = 8 << 10
	planMark  = `"format": "` + shardfile.PlanFormat + `"`
)

// anyName reports whether a folder has a name like this.
func anyName(fsys shardfile.FS, dir string, like func(name string) bool) bool {
	errFound := errors.New("found")
	err := shardfile.WalkNames(fsys, dir, func(name string) error {
		if like(name) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// HoldsBuild reports whether a folder holds a dataset, whole or damaged, an unfinished build, or parts of a
// build. It looks at names, and into manifest.json and shards alone: a damaged manifest, or none, does not make
// text of the shards beside it.
func HoldsBuild(fsys shardfile.FS, dir string) bool {
	return anyName(fsys, dir, func(name string) bool { return marks(fsys, dir, name) })
}

// marks reports whether a file shows that its folder holds a build.
func marks(fsys shardfile.FS, dir, name string) bool {
	return MarksBuild(name, func() []byte { return shardfile.HeadOf(fsys, shardfile.Join(dir, name), markBytes) }) ||
		shardfile.IsShard(name) && saysShard(fsys, shardfile.Join(dir, name))
}

// saysShard reports whether a file begins as a shard.
func saysShard(fsys shardfile.FS, path string) bool {
	return bytes.Contains(shardfile.HeadOf(fsys, path, schemaBytes), []byte(shardfile.FormatKey))
}

// ourManifest reports whether the manifest.json of a folder is a dataset's, whole or damaged.
func ourManifest(fsys shardfile.FS, dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name != shardfile.LockName && marks(fsys, dir, name) })
}

// ownFiles returns those of a folder's files that builds made. A file that only has the name of such a one,
// as other programs have a manifest.json or a tokenizer.json, is ErrForeign.
func ownFiles(fsys shardfile.FS, dir string, names []string) (own []string, err error) {
	m, _ := shard.ReadManifest(fsys, dir)
	claimed := slices.Contains(names, shardfile.BuildCheckpointName) || slices.Contains(names, shardfile.AdditionCheckpointName) ||
		m == nil && ourManifest(fsys, dir, names)
	for _, n := range names {
		switch {
		case m != nil && m.File(n) != nil:
		case !shardfile.OwnName(n):
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
func ownFile(fsys shardfile.FS, dir, name string, claimed bool) bool {
	path, base := shardfile.Join(dir, name), strings.TrimSuffix(name, shardfile.TempSuffix)
	if _, isPart := shardfile.ParsePartFile(name); isPart {
		return true
	}
	if shardfile.IsShard(base) {
		info, err := fsys.Stat(path)
		return saysShard(fsys, path) || err == nil && info.Size() == 0 // its first bytes were never written
	}
	switch base {
	case shardfile.LockName, shardfile.BuildCheckpointName, shardfile.AdditionCheckpointName, shardfile.SeenLogName:
		return true
	case shardfile.ManifestName:
		return claimed || MarksBuild(shardfile.ManifestName, func() []byte { return shardfile.HeadOf(fsys, path, markBytes) })
	case shardfile.PlanName:
		return bytes.Contains(shardfile.HeadOf(fsys, path, planBytes), []byte(planMark))
	case shardfile.RunName:
		data, err := shardfile.ReadFile(fsys, path, shardfile.MaxRunBytes)
		if err == nil {
			_, err = shardfile.CheckSeal(path, data)
		}
		return claimed || err == nil
	}
	return claimed
}

// IsDataset reports whether a folder of this machine has the names of a finished dataset.
func IsDataset(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, shardfile.ManifestName))
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return anyName(shardfile.OS(), dir, shardfile.IsShard)
}

// MarksBuild reports whether only folders that hold a build have this file. head returns the beginning of the
// file, of which markBytes are enough.
func MarksBuild(name string, head func() []byte) bool {
	switch name {
	case shardfile.BuildCheckpointName, shardfile.AdditionCheckpointName, shardfile.LockName:
		return true
	case shardfile.ManifestName:
		return bytes.Contains(head(), []byte(`"format": "dsload"`))
	}
	_, ofParts := shardfile.ParsePartFile(name)
	return ofParts
}

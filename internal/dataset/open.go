package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// OpenBuilder opens dir for a build, creates it if it is missing, and takes its lock. If another
// process has the lock, the error is a *LockedError.
//
// In an empty folder the build starts afresh and the Checkpoint is nil, as for a build that stopped
// before its first checkpoint. In a folder with an unfinished build of the same options, the
// Builder has the state of the last checkpoint. Other options are a *SettingsError, unless nothing
// was built yet or o.MayChange accepts them. A finished dataset is ErrFinished if its options are
// the same, else a *SettingsError. Files that no build made are ErrForeign. With o.Overwrite,
// OpenBuilder first removes everything that dsload left in the folder, and keeps other files; those
// that have a name that the build needs are ErrForeign.
func OpenBuilder(fsys shardfile.FS, dir string, o BuilderOptions) (_ *Builder, _ *Checkpoint, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, nil, fmt.Errorf("build into %s: %w", dir, err)
	}
	if _, err := fsys.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := fsys.MkdirAll(dir); err != nil {
			return nil, nil, err
		}
		if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
			return nil, nil, fmt.Errorf("sync folder %s: %w", filepath.Dir(dir), shardfile.WithoutPath(err))
		}
	} else if err != nil {
		return nil, nil, err
	}
	lock, err := lockDir(fsys, dir, o.Part.LockName())
	if err != nil {
		return nil, nil, err
	}
	b := &Builder{fs: fsys, dir: dir, opts: o, layout: shardfile.NewLayout(shardfile.Shape(o.Schema)), lock: lock}
	for i := range b.splits {
		b.splits[i].name, b.splits[i].document = shardfile.SplitNames[i], -1
	}
	c, err := b.restore()
	if err != nil {
		b.Close() // err is the one to report
		return nil, nil, err
	}
	return b, c, nil
}

// restore finds what the folder holds and brings the Builder and the folder into the same state.
func (b *Builder) restore() (*Checkpoint, error) {
	if b.opts.Part.IsPart() {
		return b.restorePart()
	}
	names, err := b.fs.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	begun := slices.Contains(names, shardfile.BuildCheckpointName)
	switch {
	case b.opts.Append:
		return b.openBase(names)
	case b.opts.Overwrite:
		return nil, b.clear(names)
	case slices.Contains(names, shardfile.ManifestName) && (begun || !b.othersManifest(names)):
		return nil, b.finished(begun)
	case begun:
		return b.resume(names)
	default:
		for _, n := range names {
			if n != shardfile.LockName && n != shardfile.BuildCheckpointName+shardfile.TempSuffix && !shardfile.IgnoredName(n) {
				return nil, b.foreign(n)
			}
		}
		if err := b.claim(); err != nil {
			return nil, err
		}
	}
	// The first checkpoint claims the folder, so that whatever a crash leaves is known to be ours.
	return nil, b.writeCheckpoint(false)
}

// claim makes the folder this build's, where other machines may write to it, too.
func (b *Builder) claim() error {
	c, shared := b.fs.(shardfile.Claimer)
	if !shared || b.opts.Part.IsPart() {
		return nil
	}
	var mayContinue func(json.RawMessage) error
	if !b.opts.Overwrite {
		mayContinue = func(have json.RawMessage) error {
			want := BuilderOptions{Settings: b.opts.Settings, MayChange: b.opts.MayChange}
			return sameBuild(b.dir, BuilderOptions{Settings: have}, want)
		}
	}
	return c.Claim(b.opts.Settings, mayContinue)
}

// othersManifest reports whether manifest.json is a file of another program.
func (b *Builder) othersManifest(names []string) bool {
	info, err := b.fs.Stat(b.path(shardfile.ManifestName))
	return err == nil && info.Mode().IsRegular() && !ourManifest(b.fs, b.dir, names)
}

func (b *Builder) manifest() (*shard.Manifest, error) {
	m, err := shard.ReadManifest(b.fs, b.dir)
	if errors.Is(err, shardfile.ErrOtherManifest) {
		err = b.foreign(shardfile.ManifestName)
	}
	return m, err
}

// clear removes what builds left, and claims the folder. The claim comes first: after a crash the
// folder is an empty build, and what is left of the old one is removed by the next. The manifest goes
// before the shards, so that no reader takes what is left for a dataset.
func (b *Builder) clear(names []string) error {
	names, err := ownFiles(b.fs, b.dir, names)
	if err != nil {
		return err
	}
	if err := b.claim(); err != nil {
		return err
	}
	if err := b.writeCheckpoint(false); err != nil {
		return err
	}
	if slices.Contains(names, shardfile.ManifestName) {
		if err := b.remove(shardfile.ManifestName); err != nil {
			return err
		}
	}
	return b.remove(slices.DeleteFunc(names, func(n string) bool {
		return n == shardfile.LockName || n == shardfile.BuildCheckpointName
	})...)
}

// remove removes files durably, as far as they are there.
func (b *Builder) remove(names ...string) error {
	for _, n := range names {
		err := b.fs.Remove(b.path(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		b.namesNew = b.namesNew || err == nil
	}
	return b.syncNames()
}

func (b *Builder) foreign(name string) error {
	return fmt.Errorf("%s: %w, such as %s", b.dir, ErrForeign, name)
}

// finished returns the error for a folder with a manifest. It removes what a crash at the end left.
func (b *Builder) finished(checkpoint bool) error {
	m, err := shard.ReadManifest(b.fs, b.dir)
	if err != nil {
		return err
	}
	want := b.opts
	want.MayChange = nil // a finished dataset does not change
	if err := sameBuild(b.dir, BuilderOptions{Settings: m.Settings, Schema: m.Schema}, want); err != nil {
		return err
	}
	return b.alreadyFinished(checkpoint)
}

// alreadyFinished returns ErrFinished. It first removes the checkpoint of a build that was killed once it had its
// manifest, if there is one.
func (b *Builder) alreadyFinished(checkpoint bool) error {
	if checkpoint {
		if err := b.claim(); err != nil {
			return err
		}
		if err := b.removeCheckpoint(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", b.dir, ErrFinished)
}

// resume restores the state of the checkpoint file. It reopens the shards that were open, truncates
// them to their length at that time, and removes what was written later.
func (b *Builder) resume(names []string) (*Checkpoint, error) {
	path := b.path(b.checkpointName())
	st, err := readCheckpoint(b.fs, path, b.dir, b.opts)
	if err != nil {
		return nil, err
	}
	if err := b.claim(); err != nil {
		return nil, err
	}
	for i := range st.splits {
		if !st.begun {
			break
		}
		if err := b.resumeSplit(i, &st.splits[i]); err != nil {
			var missing *fs.PathError
			if errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) {
				err = shardfile.Corrupt(missing.Path, -1, "it is missing")
			}
			return nil, fmt.Errorf("resume in %s: %w", b.dir, err)
		}
	}
	if b.base != nil && !st.begun {
		if err := b.adopt(b.base); err != nil {
			return nil, err
		}
	}
	if !b.extendsBase() {
		return nil, fmt.Errorf("resume in %s: %w", b.dir,
			shardfile.Corrupt(path, -1, "it belongs to an addition to another dataset"))
	}
	if err := b.removeStrays(names, !st.begun); err != nil {
		return nil, err
	}
	if !st.begun {
		// Nothing was built, so the options may differ from those that claimed the folder.
		return nil, b.writeCheckpoint(false)
	}
	return &Checkpoint{Cursor: st.cursor}, nil
}

// removeStrays removes what was made after the restored checkpoint. fresh: there is none.
func (b *Builder) removeStrays(names []string, fresh bool) error {
	var strays []string
	for _, n := range names {
		side := n == shardfile.SeenLogName || b.base != nil && b.sideFile(n) || b.base == nil && b.leftOver(n)
		if b.stray(n) || fresh && side {
			strays = append(strays, n)
		}
	}
	return b.remove(strays...)
}

// leftOver reports whether a name may be of the build that a claim of its folder replaced.
func (b *Builder) leftOver(name string) bool {
	return !b.opts.Part.IsPart() && shardfile.OwnName(name) && name != shardfile.LockName && name != shardfile.BuildCheckpointName
}

// stray reports whether a name was made after the restored checkpoint, or is a left-over temporary
// file.
func (b *Builder) stray(name string) bool {
	i, index, temp, ok := shardfile.ParseShardName(name)
	n, ofPart := shardfile.ParsePartName(name)
	switch {
	case b.ofMerged() && ofPart && n.Part != b.base.Merged.Partitions:
		return n.Part > b.base.Merged.Partitions
	case b.ofMerged() && ofPart:
		i, index, temp, ok = n.Split, n.Index+len(b.baseSplit(b.splits[n.Split].name).Shards), n.Temp, true
	case b.opts.Part.IsPart():
		i, index, temp, ok = n.Split, n.Index, n.Temp, ofPart
	}
	switch {
	case !ok:
		return shardfile.OwnName(name) && strings.HasSuffix(name, shardfile.TempSuffix)
	case temp:
		return b.splits[i].open == nil || index != len(b.splits[i].shards)
	}
	return index >= len(b.splits[i].shards)
}

func (b *Builder) resumeSplit(i int, saved *savedSplit) error {
	b.splits[i] = saved.buildSplit
	s := &b.splits[i]
	s.countBegun()
	for j := range s.shards {
		info := b.shardInfo(s, j)
		st, err := b.fs.Stat(b.path(info.Name))
		if err != nil {
			return err
		}
		if st.Size() != info.Bytes {
			return shardfile.Truncated(b.path(info.Name), st.Size(), info.Bytes)
		}
	}
	if s.open == nil {
		return nil
	}
	s.prepare(b.layout)
	open := newShard(b.fs, b.path(b.shardName(s.name, len(s.shards))), s.stage, s.hash)
	open.pos, open.tokens, open.blocks = s.open.pos, s.open.tokens, s.open.blocks
	open.synced, open.started = open.pos, open.pos
	for _, k := range open.blocks {
		open.rows += int64(k.Rows)
	}
	// The shard may have been committed after the checkpoint; its first bytes are still the same.
	if _, err := b.fs.Stat(open.temp); errors.Is(err, fs.ErrNotExist) {
		if err := b.fs.Rename(open.path, open.temp); err != nil {
			return err
		}
		b.namesNew = true
	} else if err != nil {
		return err
	}
	f, err := b.fs.OpenFile(open.temp, os.O_RDWR)
	if err != nil {
		return err
	}
	open.file, s.open = f, open // Close closes it from here on
	size, err := shardfile.FileSize(f)
	if err != nil {
		return err
	}
	if size < open.pos {
		return shardfile.Truncated(open.temp, size, open.pos)
	}
	if err := shardfile.Rehash(f, open.temp, open.pos, open.hash, make([]byte, stageBytes)); err != nil {
		return err
	}
	var sum [32]byte
	if !bytes.Equal(open.hash.Sum(sum[:0]), saved.openSum) {
		return shardfile.Corrupt(open.temp, -1, "its first %d bytes are not those of the checkpoint", open.pos)
	}
	if err := f.Truncate(open.pos); err != nil {
		return err
	}
	return open.syncFile()
}

// lockMark begins a lock file.
const lockMark = `{"pid":`

// lockDir takes the folder's lock. If another process has it, the error is a *LockedError; if another program
// has a file of that name, ErrForeign.
func lockDir(fsys shardfile.FS, dir, name string) (shardfile.Lock, error) {
	path := filepath.Join(dir, name)
	for i, c := range shardfile.HeadOf(fsys, path, int64(len(lockMark))) {
		if c != 0 && c != lockMark[i] { // after a power cut there may be zeros
			return nil, fmt.Errorf("%s: %w, such as %s", dir, ErrForeign, name)
		}
	}
	l, err := shardfile.LockFile(fsys, path)
	if held, ok := errors.AsType[*shardfile.LockedError](err); ok {
		held.Dir = dir // the name that was given
	}
	return l, err
}

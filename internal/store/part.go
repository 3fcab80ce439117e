package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// part is the policy of a partition. It has no owner: a second machine may build the same partition at the
// same time, and both write the same bytes under the same names. Whole files go to the folder that all parts
// share. What another machine needs to resume goes to the part's own folder, which is removed when the part is
// done. Nothing else in the shared folder is listed or removed, so the cost does not depend on the number of
// parts.
type part struct {
	*FS
	part shardfile.Part
	plan string // its seal
}

// buildPart builds a part, a second time if the checkpoint that it resumed from turns out to be damaged.
func buildPart(ctx context.Context, f *FS, t *Target, run func(fsys shardfile.FS, dir string) error) error {
	resumed, err := openPart(ctx, f, t)
	if err != nil {
		return fault.Errorf("build %s: %w", t.URI, err)
	}
	err = run(f, f.dir)
	if resumed && (errors.Is(err, shard.ErrTruncated) || errors.Is(err, shard.ErrCorrupt)) {
		// A twin that has committed removes the state of both.
		t.notice("the checkpoint of the partition is not whole (%v); starting it afresh", err)
		if err = f.empty(); err == nil {
			err = run(f, f.dir)
		}
	}
	if err != nil {
		if f.newer { // so that any machine can resume it
			err = errors.Join(err, f.save())
		}
		return err
	}
	for name := range f.state.known { // left by a run that was killed once it had its manifest
		if err := f.state.remove(f.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// openPart resumes from the bucket's checkpoint if the scratch folder has none.
func openPart(ctx context.Context, f *FS, t *Target) (resumed bool, err error) {
	p := &part{f, t.Part, t.Plan}
	f.policy, f.state = p, &folder{store: f.home.store, uri: f.home.object(stateFolder(t.Part))}
	if err := errors.Join(f.dropWhole(), f.state.list(ctx)); err != nil {
		return false, err
	}
	checkpoint := shardfile.CheckpointName(t.Part, false)
	if _, err := os.Stat(f.local(checkpoint)); err == nil || t.Overwrite {
		return err == nil && !t.Overwrite, nil
	}
	saved, ok := f.state.known[checkpoint]
	if !ok {
		return false, nil
	}
	if done, err := f.home.has(ctx, t.Part.ManifestName()); err != nil || done {
		return false, err
	}
	f.notice("resuming from the checkpoint in the bucket, of %s", saved.Modified.Format(time.RFC3339))
	err = f.resume(ctx)
	if errors.As(err, new(*remote.ChangedError)) || errors.Is(err, fs.ErrNotExist) {
		f.notice("a twin on another machine has replaced that checkpoint meanwhile; starting the partition afresh")
		return false, f.empty()
	}
	return err == nil, err
}

// names visits the manifests that the part and a merge have.
func (p *part) names(visit func(name string) error) error {
	for _, name := range []string{shardfile.ManifestName, p.part.ManifestName()} {
		there, err := p.home.has(p.ctx, name)
		if err == nil && there {
			err = visit(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removes keeps shards: a twin may have committed them, and building them again writes the same bytes.
func (p *part) removes(name string) bool { return name == p.part.ManifestName() }

// errOvertaken ends the build of a part whose dataset has been merged meanwhile.
var errOvertaken = errors.New("the parts are merged")

// commit uploads a file into the folder of all parts, unless the parts are merged. If they are merged while it
// is uploaded, it removes what the dataset does not have: a straggler's shards are those of the dataset, byte
// for byte, except for the ones that a budget removed.
func (p *part) commit(path, name string) error {
	switch name {
	case p.part.ManifestName():
		if err := p.removeUnlisted(filepath.Base(path)); err != nil {
			return err
		}
	case shardfile.PlanName:
		if there, err := p.home.has(p.ctx, name); err != nil || there {
			return errors.Join(err, os.Remove(path)) // another part has written it
		}
	}
	if merged, err := p.home.has(p.ctx, shardfile.ManifestName); err != nil || merged {
		return cmp.Or(err, errOvertaken)
	}
	if err := p.upload(path, name); errors.Is(err, remote.ErrConflict) {
		return os.Remove(path) // another part was first with the plan; the reader compares them
	} else if err != nil {
		return err
	}
	if there, err := p.home.has(p.ctx, shardfile.ManifestName); err != nil || !there {
		return err
	}
	merged, has, err := dataset.InMerged(p.FS, p.dir, p.plan, name)
	if err != nil || !merged {
		return err
	}
	if !has {
		err = p.home.remove(p.ctx, name)
	}
	return errors.Join(errOvertaken, err)
}

// removeUnlisted removes the shards of the part that its manifest, still under another name, does not list. If a twin has uploaded a
// manifest meanwhile, both list the same shards.
func (p *part) removeUnlisted(manifest string) error {
	m, err := shard.ReadManifestFile(p.FS, p.dir, manifest)
	if err != nil {
		return err
	}
	for _, split := range shardfile.SplitNames {
		n := 0
		if s := m.Split(split); s != nil {
			n = len(s.Shards)
		}
		for ; ; n++ {
			name := p.part.ShardName(split, n)
			more, err := p.home.has(p.ctx, name)
			if err == nil && more {
				err = p.home.remove(p.ctx, name)
			}
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// maxManifestBytes limits the manifests that are compared.
const maxManifestBytes = 64 << 20

// whole is the policy of a whole build or an addition. It claims the folder of the bucket before its first byte,
// so the folder is listed once, and everything is in it.
type whole struct {
	*FS
	target *Target
	base   []byte // the manifest of the dataset that is added to
}

// buildWhole is one call of run for a whole build or an addition.
func buildWhole(ctx context.Context, f *FS, t *Target, run func(fsys shardfile.FS, dir string) error) error {
	f.home.claim.d = f.home
	w := &whole{FS: f, target: t}
	f.policy, f.state = w, f.home
	if err := errors.Join(f.dropWhole(), w.open(ctx)); err != nil {
		return fault.Errorf("build %s: %w", t.URI, err)
	}
	err := run(f, f.dir)
	switch {
	case errors.Is(err, errClaimed):
		return err
	case err != nil && f.newer && !errors.Is(err, errLost): // so that any machine can resume it
		err = errors.Join(err, f.save())
	}
	return errors.Join(err, w.close(err == nil))
}

// open lists the folder. The scratch folder is used if it has the claim: then it has what is newest. A
// claim that has just been taken begins with what the bucket has.
func (w *whole) open(ctx context.Context) error {
	if err := w.home.list(ctx); err != nil {
		return err
	}
	_, finished := w.home.known[shardfile.ManifestName]
	if w.target.Adds && !finished {
		return nil // there is nothing to add to, and what is unfinished stays as it is
	}
	c := w.home.claim
	if err := c.read(ctx); err != nil {
		return err
	}
	if w.target.Adds {
		var err error
		if w.base, err = w.home.read(ctx, shardfile.ManifestName, maxManifestBytes); err != nil {
			return fmt.Errorf("read %s: %w", shardfile.ManifestName, err)
		}
	}
	if c.fresh {
		return w.begin(ctx)
	}
	id, _ := os.ReadFile(c.idFile) // a new scratch folder has none
	if c.id = string(id); c.mine() {
		return nil
	}
	return w.empty()
}

func (w *whole) checkpoint() string { return shardfile.CheckpointName(w.target.Part, w.target.Adds) }

// begin makes the scratch folder what the bucket's checkpoint says, once the claim is taken.
func (w *whole) begin(ctx context.Context) error {
	c := w.home.claim
	if err := errors.Join(c.check(ctx), w.empty()); err != nil {
		return err
	}
	if saved, ok := w.home.known[w.checkpoint()]; ok && !w.target.Overwrite {
		w.notice("resuming from the checkpoint of %s, of %s", c.from.host(), saved.Modified.Format(time.RFC3339))
		if err := w.resume(ctx); err != nil {
			return err
		}
	}
	return c.keep()
}

// errClaimed makes a run begin again, with what the bucket holds since it has the claim.
var errClaimed = errors.New("the folder is claimed")

// Claim implements shardfile.Claimer. It returns errClaimed if the run must begin again: somebody else had the claim,
// or the bucket holds something other than what was listed.
func (f *FS) Claim(settings json.RawMessage, mayContinue func(json.RawMessage) error) error {
	w, owned := f.policy.(*whole)
	if !owned {
		return nil
	}
	d := f.home
	c := d.claim
	mine := c.mine()
	if mine && dataset.DiffSettings(c.held.Settings, settings, nil) == nil {
		return nil
	}
	if err := c.take(f.ctx, settings, mayContinue, f.clock()); err != nil {
		if !c.mine() && c.held.ID != "" {
			f.notice("process %d on %s builds there, since %s", c.held.PID, c.held.host(), c.held.Time.Format(time.RFC3339))
		}
		return err
	}
	if mine && c.from.ID == "" {
		return nil
	}
	before := d.known
	if err := d.list(f.ctx); err != nil {
		return err
	}
	before[ownerName] = d.known[ownerName]
	same := maps.EqualFunc(before, d.known, func(a, b remote.Object) bool { return a.ETag == b.ETag && a.Size == b.Size })
	_, saved := d.known[w.checkpoint()]
	if c.fresh = c.from.ID != "" || saved && mayContinue != nil || !same; c.fresh {
		return errClaimed
	}
	return c.keep()
}

// close gives the claim up once the run is done, or if it has no row yet, so that other settings may follow.
func (w *whole) close(done bool) error {
	c := w.home.claim
	switch {
	case done && c.held.ID != "" && !c.mine():
		return w.releaseLeft()
	case done:
		return c.release(w.ctx)
	}
	if rows, err := dataset.HasRows(w.FS.FS, w.local(w.checkpoint())); err == nil && !rows {
		_ = c.release(w.ctx) // the run has its error, and a claim keeps only other settings out
	}
	return nil
}

// releaseLeft removes the claim of a build that was killed once it had removed all else.
func (w *whole) releaseLeft() error {
	for name := range w.home.known {
		if shardfile.RoleOf(name) == shardfile.RoleCheckpoint {
			return nil
		}
	}
	m, err := shard.ReadManifest(w.FS, w.dir)
	if err != nil {
		return err
	}
	c := w.home.claim
	if dataset.DiffSettings(m.Settings, c.held.Settings, nil) != nil {
		return nil // it is of an addition, or of another build that begins
	}
	c.id = c.held.ID
	return c.release(w.ctx)
}

func (w *whole) names(visit func(name string) error) error {
	for name := range w.home.known {
		if name == ownerName || stretchPattern().MatchString(name) {
			continue // it serves the bucket alone
		}
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

// manifestTries is how often the bucket's manifest is compared if it is replaced each time.
const manifestTries = 3

func (w *whole) commit(path, name string) (err error) {
	for range manifestTries {
		if name == shardfile.ManifestName {
			if err := w.checkManifest(path); err != nil {
				return err
			}
		}
		if err = w.upload(path, name); !errors.Is(err, remote.ErrConflict) {
			return err
		}
	}
	return err
}

func (w *whole) removes(name string) bool {
	_, known := w.home.known[name]
	return known
}

// checkManifest makes sure that no other build has finished there with another manifest.
func (w *whole) checkManifest(path string) error {
	uri := w.home.object(shardfile.ManifestName)
	there, err := w.home.read(w.ctx, shardfile.ManifestName, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w", uri, err)
	}
	here, err := os.ReadFile(path)
	switch {
	case err != nil || bytes.Equal(here, there):
		return err
	case w.base == nil && w.target.Overwrite: // it was on its way when the folder was taken over
		return nil
	case w.base == nil:
		return fault.Errorf("write %s: another build has finished there; choose another {out}, or {overwrite} it", uri)
	case !bytes.Equal(there, w.base):
		return fmt.Errorf("write %s: another build has added to the dataset, or replaced it; "+
			"run the same command again", uri)
	}
	return nil
}

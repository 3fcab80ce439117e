package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/shard"
)

// maxManifestBytes limits the manifests that are compared.
const maxManifestBytes = 64 << 20

// whole is the policy of a whole build or an addition. One machine at a time owns the folder of the bucket:
// it is listed once, and everything is in it.
type whole struct {
	*FS
	base []byte // the manifest of the dataset that is added to
}

// openWhole lists the folder, and resumes what another machine left there.
func openWhole(ctx context.Context, f *FS, t *Target) error {
	w := &whole{FS: f}
	f.policy, f.state = w, f.home
	if err := f.home.list(ctx); err != nil {
		return err
	}
	idFile := filepath.Join(filepath.Dir(f.dir), "id")
	id, _ := os.ReadFile(idFile) // a new folder has none
	f.owner = &ownership{string(id)}
	held, err := ownerOf(ctx, f.home)
	if err != nil {
		return err
	}
	_, finished := f.home.known[shard.ManifestName]
	pending := !finished
	if t.Adds && !finished {
		return nil // there is nothing to add to, and what is unfinished stays as it is
	}
	if t.Adds {
		// The first checkpoint of an addition is uploaded at once. So without one there is no addition,
		// and anything in the scratch folder belongs to one that ended elsewhere.
		_, pending = f.home.known[shard.CheckpointName(t.Part, true)]
		if w.base, err = f.home.store.ReadAll(ctx, f.home.object(shard.ManifestName), maxManifestBytes); err != nil {
			return fmt.Errorf("read %s: %w", shard.ManifestName, err)
		}
	}
	if f.owner.id != "" && (held.ID == f.owner.id || !pending && !t.Adds) {
		return nil
	}
	// The scratch folder is new, or another machine has continued the build since.
	if !pending {
		held = owner{}
	}
	return w.takeOver(ctx, idFile, held)
}

// takeOver empties the scratch folder, gives it a new id, and resumes from the checkpoint in the bucket
// unless held is zero.
func (w *whole) takeOver(ctx context.Context, idFile string, held owner) error {
	if err := w.empty(); err != nil {
		return err
	}
	if held.ID != "" {
		w.notice("resuming from the checkpoint of %s, of %s", cmp.Or(held.Host, "another machine"),
			held.Time.Format(time.RFC3339))
		if err := w.resume(ctx); err != nil {
			return err
		}
	}
	random := make([]byte, 16)
	rand.Read(random) // never fails
	w.owner.id = hex.EncodeToString(random)
	if err := os.WriteFile(idFile, []byte(w.owner.id), 0o600); err != nil {
		return err
	}
	if held.ID != "" {
		return w.owner.take(ctx, w.home, w.clock())
	}
	return nil
}

func (w *whole) names(visit func(name string) error) error {
	for name := range w.home.known {
		if hidden(name) {
			continue
		}
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *whole) commit(name string) error {
	if name == shard.ManifestName {
		if err := w.checkManifest(); err != nil {
			return err
		}
	}
	return w.upload(name)
}

func (w *whole) removes(name string) bool {
	_, known := w.home.known[name]
	return known
}

// checkManifest makes sure that no other build has finished there with another manifest.
func (w *whole) checkManifest() error {
	uri := w.home.object(shard.ManifestName)
	there, err := w.home.store.ReadAll(w.ctx, uri, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s: %w", uri, err)
	}
	here, err := os.ReadFile(w.local(shard.ManifestName))
	switch {
	case err != nil || bytes.Equal(here, there):
		return err
	case w.base == nil:
		return fault.Errorf("write %s: another build has finished there; choose another {out}, or {overwrite} it", uri)
	case !bytes.Equal(there, w.base):
		return fmt.Errorf("write %s: another build has added to the dataset, or replaced it; "+
			"run the same command again", uri)
	}
	return nil
}

const maxOwnerBytes = 4 << 10

// ownership is the right of one scratch folder to write to a folder of a bucket. The object build.remote
// names the scratch folder that has it.
type ownership struct{ id string }

// owner is what build.remote holds.
type owner struct {
	ID   string    `json:"id"`
	Host string    `json:"host"`
	PID  int       `json:"pid"`
	Time time.Time `json:"time"`
}

// ownerOf returns which scratch folder writes to a folder, the zero owner if none does.
func ownerOf(ctx context.Context, d *folder) (held owner, err error) {
	if there, err := d.has(ctx, ownerName); err != nil || !there {
		return held, err
	}
	data, err := d.store.ReadAll(ctx, d.object(ownerName), maxOwnerBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &held)
	}
	if err != nil {
		return held, fmt.Errorf("read %s: %w", ownerName, err)
	}
	return held, nil
}

// check returns an error if another scratch folder has taken the folder over.
func (o *ownership) check(ctx context.Context, d *folder) error {
	held, err := ownerOf(ctx, d)
	if err == nil && held.ID != "" && held.ID != o.id {
		err = fmt.Errorf("build %s: %s has taken the build over, at %s; "+
			"let it finish there, or stop it and run the same command again", d.uri, held.Host,
			held.Time.Format(time.RFC3339))
	}
	return err
}

// take makes this scratch folder the owner.
func (o *ownership) take(ctx context.Context, d *folder, now time.Time) error {
	host, _ := os.Hostname() // a hint for people
	data, err := json.Marshal(owner{ID: o.id, Host: host, PID: os.Getpid(), Time: now.UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return d.putBytes(ctx, ownerName, data)
}

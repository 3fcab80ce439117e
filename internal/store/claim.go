package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
)

// A claim is the right of one scratch folder to write to a folder of a bucket, from before the first byte to
// after the last. The object build.remote names the scratch folder that has it. Stores with conditional writes
// let one of several have it; in others the last that writes it has it, and reads it back.
type claim struct {
	d      *folder
	idFile string // holds the id of a scratch folder that has all that its claim stands for
	id     string // this scratch folder's; "" before the first claim
	// fresh is set once the claim is taken, until the scratch folder has what the bucket holds.
	fresh bool
	from  owner // whose it was then
	held  owner // what was last read
	etag  string
}

// owner is what build.remote holds.
type owner struct {
	ID       string          `json:"id"`
	Host     string          `json:"host"`
	PID      int             `json:"pid"`
	Time     time.Time       `json:"time"`
	Settings json.RawMessage `json:"settings,omitempty"` // the build's
}

func (o *owner) host() string {
	if o.Host == "" {
		return "another machine"
	}
	return o.Host
}

const (
	maxOwnerBytes = 8 << 20
	claimTries    = 5
)

func (c *claim) mine() bool { return c.id != "" && c.held.ID == c.id }

// read finds out who has the claim.
func (c *claim) read(ctx context.Context) error {
	c.held, c.etag = owner{}, ""
	data, err := c.d.read(ctx, ownerName, maxOwnerBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c.held)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", ownerName, err)
	}
	c.etag = c.d.known[ownerName].ETag
	return nil
}

// errLost ends a build that has lost its folder. Its scratch folder is of no more use.
var errLost = errors.New("has taken the build over")

// check returns an error if another scratch folder has the claim now.
func (c *claim) check(ctx context.Context) error {
	if c.mine() && c.etag != "" {
		o, err := c.d.refresh(ctx, ownerName)
		if err == nil && o.ETag == c.etag {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read %s: %w", ownerName, err)
		}
	}
	if err := c.read(ctx); err != nil || c.mine() {
		return err
	}
	when := ""
	if !c.held.Time.IsZero() {
		when = ", at " + c.held.Time.Format(time.RFC3339)
	}
	return fault.Errorf("build %s: %s %w%s; let it finish there, or stop it and run the same command again", c.d.uri,
		c.held.host(), errLost, when)
}

// take takes the claim for a build with these settings. If another scratch folder has it, mayContinue decides,
// unless it is nil. Whoever had it stops at its next request.
func (c *claim) take(ctx context.Context, settings json.RawMessage, mayContinue func(json.RawMessage) error,
	now time.Time) error {
	host, _ := os.Hostname() // a hint for people
	c.from = owner{}
	if !c.mine() {
		random := make([]byte, 16)
		rand.Read(random) // never fails
		c.id = hex.EncodeToString(random)
	}
	data, err := json.Marshal(owner{ID: c.id, Host: host, PID: os.Getpid(), Time: now.UTC().Truncate(time.Second),
		Settings: settings})
	if err != nil {
		return err
	}
	for range claimTries {
		if !c.mine() && c.held.Settings != nil && mayContinue != nil {
			if err := mayContinue(c.held.Settings); err != nil {
				return err
			}
		}
		if !c.mine() {
			c.from = c.held
		}
		_, err := c.d.store.Put(ctx, c.d.object(ownerName), bytes.NewReader(data), int64(len(data)),
			c.d.unchanged(ownerName))
		if err != nil && !errors.Is(err, remote.ErrConflict) {
			return fmt.Errorf("claim %s: %w", c.d.uri, err)
		}
		// Also where it was written: the store may not know conditions. And where it was not, it may have been,
		// by an attempt whose answer was lost.
		if err := c.read(ctx); err != nil || c.mine() {
			return err
		}
	}
	return fmt.Errorf("claim %s: %s takes it, too, again and again; stop it, or choose another folder", c.d.uri,
		c.held.host())
}

// keep notes, for the next run on this machine, that the scratch folder has all that the claim stands for.
func (c *claim) keep() error {
	c.fresh = false
	return writeFile(c.idFile, func(out *os.File) error {
		_, err := out.WriteString(c.id)
		return err
	})
}

// release gives the claim up.
func (c *claim) release(ctx context.Context) error {
	if !c.mine() {
		return nil
	}
	return c.d.remove(ctx, ownerName)
}

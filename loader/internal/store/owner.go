package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

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

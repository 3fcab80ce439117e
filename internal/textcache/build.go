package textcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// open returns the cache of this user.
func open() (*Cache, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	c := &Cache{Dir: dir, Limit: DefaultLimit}
	if limit := os.Getenv("DSLOAD_CACHE_LIMIT"); limit != "" {
		if c.Limit, err = units.ParseSize(limit); err != nil {
			return nil, fault.Kindf(fault.Usage, "DSLOAD_CACHE_LIMIT=%s: %v", limit, err)
		}
	}
	return c, nil
}

// damageOf returns why a folder of the cache can be neither served nor built on: it is damaged, or
// is not what its name says. Damage inside a shard shows only when it is read.
func damageOf(id *setup.Identity, dir string, ready bool) error {
	var err error
	if ready {
		var d *shard.Dataset
		if d, err = shard.Open(dir); err == nil {
			return errors.Join(id.CheckFinished(d.Manifest()), d.Close())
		}
	} else {
		var u *dataset.Unfinished
		if u, err = dataset.ReadUnfinished(shardfile.OS(), dir); err == nil {
			return id.CheckSettings(u.Settings)
		}
	}
	for _, damage := range []error{shard.ErrCorrupt, shard.ErrTruncated, shard.ErrVersion, shard.ErrNotFound} {
		if errors.Is(err, damage) {
			return err
		}
	}
	return nil // whoever opens the folder reports other errors
}

// Build finds the dataset of o's sources in the cache of this user, or lets build make it there with the options that it
// gets. It returns the summary of a dataset that was there, else nil. say takes messages, a line each.
func Build(ctx context.Context, o option.Options, say func(string), build func(option.Options) error) (
	*report.Summary, error) {
	cache, err := open()
	if err != nil {
		return nil, err
	}
	if err := cache.Prepare(); err != nil { // before a server reads what lies there
		return nil, err
	}
	what := uris.Several(o.Sources)
	o.Out = cache.Dir // for scratch files; the entry is not known yet
	id, err := setup.Identify(ctx, o)
	if err != nil {
		return nil, err
	}
	cache.Damage = func(dir string, ready bool) error { return damageOf(id, dir, ready) }
	entry, err := cache.Acquire(ctx, Key{Name: cacheName(o.Sources), Settings: id.Settings, Content: id.Content}, func(pid int) {
		who := "another process"
		if pid > 0 {
			who = fmt.Sprintf("process %d", pid)
		}
		say(fmt.Sprintf("waiting for %s, which builds %s", who, what))
	})
	if errors.Is(err, context.Canceled) {
		return nil, fault.Kindf(fault.Interrupted, "wait for the build of %s: interrupted", what)
	}
	if err != nil {
		return nil, err
	}
	defer entry.Close()
	if entry.Ready {
		return ingest.ReadFinished(shardfile.OS(), entry.Dir)
	}
	if entry.Damage != nil {
		say(fmt.Sprintf("warning: the cached dataset of %s cannot be used and is built again: %v", what, entry.Damage))
	}
	if entry.Changed {
		say(what + " changed since it was cached: building it again")
	}
	o = id.Options
	o.Out = entry.Dir
	if err := build(o); err != nil {
		return nil, err
	}
	gone, err := cache.Evict(entry.Dir)
	for _, e := range gone {
		say(fmt.Sprintf("evicted %s, %v, last used %s: the cache is kept to %v (DSLOAD_CACHE_LIMIT)", e.Dir,
			units.Size(e.Bytes), e.Used.Format(time.DateTime), units.Size(cache.Limit)))
	}
	if err != nil {
		say("warning: " + err.Error()) // the dataset is there
	}
	return nil, nil
}

// cacheName names an entry after its first source.
func cacheName(sources []string) string {
	if abs, err := filepath.Abs(uris.Redact(sources[0])); err == nil {
		return filepath.Base(abs)
	}
	return "text"
}

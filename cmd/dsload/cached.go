package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/textcache"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// openCache returns the cache of this user.
func openCache() (*textcache.Cache, error) {
	dir, err := textcache.Dir()
	if err != nil {
		return nil, err
	}
	c := &textcache.Cache{Dir: dir, Limit: textcache.DefaultLimit}
	if limit := os.Getenv("DSLOAD_CACHE_LIMIT"); limit != "" {
		if c.Limit, err = units.ParseSize(limit); err != nil {
			return nil, usagef("DSLOAD_CACHE_LIMIT=%s: %v", limit, err)
		}
	}
	return c, nil
}

// cacheDamage returns why a folder of the cache can be neither served nor built on: it is damaged, or
// is not what its name says. Damage inside a shard shows only when it is read.
func cacheDamage(id *ingest.Identity, dir string, ready bool) error {
	var err error
	if ready {
		var d *shard.Dataset
		if d, err = shard.Open(dir); err == nil {
			return errors.Join(id.CheckFinished(d.Manifest()), d.Close())
		}
	} else {
		var u *shard.Unfinished
		if u, err = shard.ReadUnfinished(shard.OS(), dir); err == nil {
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

// runCached builds into the cache, unless it already has the dataset.
func runCached(cmd *cobra.Command, o option.Options, f *buildFlags) error {
	if f.stdinLife {
		ctx, owned := context.WithCancel(cmd.Context())
		defer endWithOwner(cmd.InOrStdin(), owned)()
		cmd.SetContext(ctx)
	}
	if err := checkCached(cmd, &o); err != nil {
		return err
	}
	cache, err := openCache()
	if err != nil {
		return err
	}
	if err := cache.Prepare(); err != nil { // before a server reads what lies there
		return err
	}
	stderr := cmd.ErrOrStderr()
	o.Out = cache.Dir // for scratch files; the entry is not known yet
	id, err := ingest.Identify(cmd.Context(), o)
	if err != nil {
		return err
	}
	cache.Damage = func(dir string, ready bool) error { return cacheDamage(id, dir, ready) }
	key := textcache.Key{Name: cacheName(o.Sources), Settings: id.Settings, Content: id.Content}
	entry, err := cache.Acquire(cmd.Context(), key, func(pid int) { fmt.Fprintln(stderr, waitingFor(o.Sources, pid)) })
	if errors.Is(err, context.Canceled) {
		return fault.Kindf(fault.Interrupted, "wait for the build of %s: interrupted", sourcesText(o.Sources))
	}
	if err != nil {
		return err
	}
	defer entry.Close()
	if entry.Ready {
		s, err := ingest.ReadFinished(shard.OS(), entry.Dir)
		if err != nil {
			return err
		}
		summaryForPeople(s)
		return f.report(cmd, s)
	}
	if entry.Damage != nil {
		warn(stderr, fmt.Sprintf("the cached dataset of %s cannot be used and is built again: %v",
			oneLine(sourcesText(o.Sources)), entry.Damage))
	}
	if entry.Changed {
		fmt.Fprintf(stderr, "%s changed since it was cached: building it again\n", oneLine(sourcesText(o.Sources)))
	}
	o = id.Options
	o.Out = entry.Dir
	if err = f.build(cmd, o); err == nil {
		evict(stderr, cache, entry.Dir)
	}
	return err
}

// checkCached returns an error for arguments and flags that build --cached cannot use.
func checkCached(cmd *cobra.Command, o *option.Options) error {
	switch {
	case len(o.Sources) == 0:
		return usagef("build --cached: give at least one SOURCE")
	case cmd.Flags().Changed("out"):
		return usagef("build --cached --out %s: the cache chooses the folder; leave one of them out", o.Out)
	case o.Overwrite:
		return usagef("build --cached --overwrite: a cached dataset is built again only where its sources changed; " +
			"remove its folder to force that")
	}
	return nil
}

// evict brings the cache within its limit. It keeps the dataset in keep, whose build succeeded even if this fails.
func evict(stderr io.Writer, cache *textcache.Cache, keep string) {
	gone, err := cache.Evict(keep)
	for _, e := range gone {
		fmt.Fprintf(stderr, "evicted %s, %s, last used %s: the cache is kept to %s (DSLOAD_CACHE_LIMIT)\n", e.Dir,
			formatSize(e.Bytes), e.Used.Format(time.DateTime), formatSize(cache.Limit))
	}
	if err != nil {
		warn(stderr, err.Error())
	}
}

// cacheName names an entry after its first source.
func cacheName(sources []string) string {
	if abs, err := filepath.Abs(source.Redact(sources[0])); err == nil {
		return filepath.Base(abs)
	}
	return "text"
}

func sourcesText(sources []string) string {
	first := source.Redact(sources[0])
	if len(sources) == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, len(sources)-1)
}

func waitingFor(sources []string, pid int) string {
	who := "another process"
	if pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("waiting for %s, which builds %s", who, oneLine(sourcesText(sources)))
}

// textFlags adds the flags of build that say how text becomes rows, except those that the command
// already has, and returns them.
func textFlags(flags *pflag.FlagSet) *pflag.FlagSet {
	var o option.Options
	added := pflag.NewFlagSet("text", pflag.ContinueOnError)
	for _, opt := range option.All() {
		if !opt.ChangesBytes() || flags.Lookup(opt.Name) != nil {
			continue
		}
		addOption(added, &o, opt.Name)
		flag := added.Lookup(opt.Name)
		inGroup(added, groupForText+strings.ToLower(string(opt.Group)), opt.Name)
		if flag.Shorthand != "" && flags.ShorthandLookup(flag.Shorthand) != nil {
			flag.Shorthand = ""
		}
		flags.AddFlag(flag)
	}
	return added
}

// given returns those flags of a set that the user gave, as arguments.
func given(flags *pflag.FlagSet) (args []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+v)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}

// isServedFolder reports whether an argument of serve is the folder of a dataset, finished or not.
func isServedFolder(arg string) bool {
	dir := serve.DatasetDir(arg)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, shard.ManifestName)); err == nil {
		return true
	}
	_, err := shard.ReadUnfinished(shard.OS(), dir)
	return err == nil || !errors.Is(err, shard.ErrNotFound)
}

// isText reports whether an argument of serve that is not a dataset is text to build: an existing
// file or, with flags about text, anything that build takes.
func isText(arg string, asked bool) bool {
	if asked || strings.HasPrefix(arg, "synth://") {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// servable extends a check of serve's arguments: unless one is the address of text, all must be
// folders or datasets in buckets.
func servable(text *pflag.FlagSet, check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		asked := len(given(text)) > 0
		if slices.ContainsFunc(args, func(arg string) bool {
			return strings.Contains(arg, "://") &&
				isText(arg, asked)
		}) {
			return check(cmd, args)
		}
		rest := slices.DeleteFunc(slices.Clone(args), inBucket)
		if err := folders(cobra.ArbitraryArgs)(cmd, rest); err != nil {
			return err
		}
		return check(cmd, args)
	}
}

// printedError is the error of a command whose message another process has printed.
type printedError struct{ code int }

func (e *printedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// holdAll keeps datasets in the cache until they are released.
func holdAll(dirs []string) (release func() error, err error) {
	var held []io.Closer
	release = func() (err error) {
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	for _, arg := range dirs {
		entry, err := textcache.Hold(serve.DatasetDir(arg))
		if err != nil {
			return release, errors.Join(err, release())
		}
		if entry != nil {
			held = append(held, entry)
		}
	}
	return release, nil
}

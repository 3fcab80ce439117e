package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/store"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
)

// commandCacheBytes is the disk cache of a command that reads a dataset in a bucket and ends.
const commandCacheBytes = 256 << 20

// A datasetFS is the file system of the datasets that arguments name: local folders, and folders in
// buckets.
type datasetFS struct {
	shardfile.ReadFS
	buckets *store.Reader // nil where no argument is an address
}

// openDatasets opens the file system for the arguments of a command, each DATASET or NAME=DATASET.
func openDatasets(command string, args []string, o store.ReaderOptions, notes io.Writer) (*datasetFS, error) {
	if !slices.ContainsFunc(args, inBucket) {
		return &datasetFS{ReadFS: shardfile.OS()}, nil
	}
	for _, arg := range args {
		dir := serve.DatasetDir(arg)
		if err := remote.CheckSigned(dir); err != nil {
			return nil, usagef("%s: %w", command, err)
		}
		if remote.Writable(dir) {
			if err := remote.CheckFolder(dir); err != nil {
				return nil, usagef("%s %s: %w", command, arg, err)
			}
		}
	}
	o.Notice = func(text string) { fmt.Fprintln(notes, "note: "+oneLine(text)) }
	fsys, err := store.NewReader(o)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", command, strings.Join(args, " "), err)
	}
	return &datasetFS{fsys, fsys}, nil
}

// onDatasets returns the function that runs a command on the datasets that its arguments name. The
// command's context also ends when a bucket no longer answers.
func onDatasets(o store.ReaderOptions, run func(cmd *cobra.Command, args []string, at *datasetFS) error) (
	runE func(*cobra.Command, []string) error) {
	return func(cmd *cobra.Command, args []string) (err error) {
		ctx, end := context.WithCancelCause(cmd.Context())
		defer end(nil)
		o.Lost, o.CacheBytes = end, commandCacheBytes
		at, err := openDatasets(cmd.Name(), args, o, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, at.buckets.Close()) }()
		defer context.AfterFunc(ctx, func() { _ = at.buckets.Close() })() // a request may wait for minutes
		cmd.SetContext(ctx)
		err = run(cmd, args, at)
		cause := context.Cause(ctx)
		if err != nil && fault.KindOf(cause) == fault.Unreachable && fault.KindOf(err) != fault.Unreachable {
			err = fmt.Errorf("%s %s: %w", cmd.Name(), strings.Join(args, " "), cause)
		}
		return adviseUnread(adviseMissing(err, args), args, cmd.Name())
	}
}

// adviseUnread adds what to do to the error of a command about a dataset that is damaged, which verify itself names,
// or that this user may not read.
func adviseUnread(err error, datasets []string, command string) error {
	dir := "DATASET"
	if len(datasets) == 1 {
		dir = serve.DatasetDir(datasets[0])
	}
	path, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case isPath && errors.Is(err, fs.ErrPermission) && filepath.Dir(path.Path) == filepath.Clean(dir):
		return fmt.Errorf("%w; make it readable, as with `chmod -R u+rX %s`, and run the same command again", err, shell.Quote(dir))
	case command != "verify" && (errors.Is(err, shard.ErrCorrupt) || errors.Is(err, shard.ErrTruncated)):
		return fmt.Errorf("%w; 'dsload verify %s' names all that is damaged", err, shell.Quote(dir))
	}
	return err
}

// adviseMissing adds what to do to the error if a folder or an address holds no dataset.
func adviseMissing(err error, datasets []string) error {
	switch {
	case !errors.Is(err, shard.ErrNotFound), errors.Is(err, shard.ErrUnfinished):
		return err
	case slices.ContainsFunc(datasets, inBucket):
		return fmt.Errorf("%w; check the address; 'dsload build SOURCE --out ADDRESS' writes a dataset there", err)
	case len(datasets) == 1:
		dir := serve.DatasetDir(datasets[0])
		if _, statErr := os.Stat(filepath.Join(dir, shardfile.PlanName)); statErr == nil {
			return fmt.Errorf("%w; partitions of a plan lie there; 'dsload merge %s' joins them", err, shell.Quote(dir))
		}
	}
	return fmt.Errorf("%w; check the path; 'dsload build SOURCE --out FOLDER' writes a dataset there", err)
}

// inBucket reports whether an argument DATASET or NAME=DATASET is an address in a bucket.
func inBucket(arg string) bool { return remote.Writable(serve.DatasetDir(arg)) }

// folders extends a check of arguments: each must be a folder, here or in a bucket, or NAME=FOLDER.
func folders(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for _, arg := range args {
			scheme, _, isURL := strings.Cut(arg, "://")
			scheme = scheme[strings.LastIndexByte(scheme, '=')+1:]
			if isURL && !strings.ContainsAny(scheme, `/\`) && !remote.Writable(scheme+"://") {
				return usagef("%s %s: addresses of kind %s:// cannot be read; "+
					"copy the dataset to a folder of this machine or to an s3:// or gs:// bucket, or an az:// container",
					cmd.Name(), arg, scheme)
			}
		}
		return check(cmd, args)
	}
}

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/dsload/dsload/internal/store"
)

// openBuckets sets the file system if a dataset is in a bucket. The returned function closes it and
// may be called twice.
func (f *serveFlags) openBuckets(logs io.Writer) (closeBuckets func() error, err error) {
	if f.cache != 0 && f.cache < store.MinCacheBytes {
		return nil, usagef("--cache %s: must be at least %s", formatSize(f.cache), formatSize(store.MinCacheBytes))
	}
	if f.cache != 0 && !slices.ContainsFunc(f.opts.Datasets, inBucket) {
		warn(logs, "--cache has no effect: no dataset lies in a bucket")
	}
	at, err := openDatasets("serve", f.opts.Datasets, store.ReaderOptions{CacheBytes: f.cache}, logs)
	if err != nil {
		return nil, err
	}
	f.opts.FS, f.opts.Buckets = at.ReadFS, at.buckets
	return at.buckets.Close, nil
}

// adviseText adds to the error of adviseMissing that text can be served too, and to others what onDatasets does.
func adviseText(err error, datasets []string) error {
	advised := adviseMissing(err, datasets)
	if advised == err || slices.ContainsFunc(datasets, isServedFolder) {
		return adviseUnread(advised, datasets, "serve")
	}
	return fmt.Errorf("%w; with a flag such as --tokenizer the text that lies there is served", advised)
}

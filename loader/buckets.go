package loader

import (
	"github.com/dsload/dsload/loader/internal/store"
	"github.com/dsload/dsload/loader/remote"
)

// Buckets is a read-only file system of datasets in buckets, which caches what it reads.
type Buckets = store.Reader

// BucketOptions configures OpenBuckets.
type BucketOptions = store.ReaderOptions

// MinBucketCache is the smallest size of the cache, in bytes.
const MinBucketCache = store.MinCacheBytes

// OpenBuckets returns a file system of datasets in buckets. Close it.
func OpenBuckets(o BucketOptions) (*Buckets, error) { return store.NewReader(o) }

// InBucket reports whether a name is an address in a bucket that datasets can be written to.
func InBucket(name string) bool { return remote.Writable(name) }

// CheckBucketFolder returns an error if an address is not that of a folder in a bucket.
func CheckBucketFolder(address string) error { return remote.CheckFolder(address) }

// Package bucket is the file system of datasets in buckets: it reads objects at s3:// and gs://
// addresses, and caches what it reads in a local file.
//
//	shard.Dataset -> FS -> file -> cache -> remote.Store
//
// Files are read in blocks of fixed size. A block that is not in the cache is fetched with one
// request, however many readers want it. Once the cache is full, the least recently used block is
// evicted. A stream announces which blocks it will read, through an Ahead. Without one, the blocks
// after one that is read in order are fetched ahead. A waiting reader comes first: it fetches a
// block itself if that is only queued.
//
// The cache is one file without a name, so it is gone with the process, however that ends. No other
// process ever reads it.
//
// Ownership: whoever makes an FS closes it. Close ends all requests, and reads that wait for them
// fail.
//
// Concurrency: an FS and its files are safe for concurrent use.
//
// Invariants:
//
//	I1  A file has the bytes of one version of its object: its ETag and size are those that were seen
//	    first. Once the bucket holds another version, reading fails with shard.ErrReplaced.
//	I2  The cache holds at most Options.CacheBytes, and an FS at most MemoryBytes in memory.
//	    Blocks that were fetched ahead and not read are at most a share of the cache.
//	I3  The manifest alone is checked again: at most once in Options.Interval, in the background, and
//	    after a read that met another version. Only the latter check is waited for.
package bucket

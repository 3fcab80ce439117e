// Package bucket is the file system of datasets that lie in buckets: it reads objects of s3:// and
// gs:// addresses, and keeps what it read in a file of this machine.
//
//	shard.Dataset -> FS -> file -> cache -> remote.Store
//
// Files are read in blocks of fixed size. A block that is not in the cache is fetched with one
// request, however many readers want it. Once the cache is full, the block that was not used for
// longest makes room. A stream says ahead which blocks it will read, through an Ahead; where there is
// none, what follows a block that is read in order is fetched ahead. Who waits for a block comes
// first: it fetches one that is only queued by itself.
//
// The cache is one file without a name, so it is gone with the process, however that ends. Nothing
// in it is ever read by another process.
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
//	I3  The manifest alone is looked at again: at most once in Options.Interval, and after a read that
//	    met another version. Nobody waits for the former.
package bucket

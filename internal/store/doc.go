// Package store makes folders of buckets file systems, above the objects of package remote.
//
//	Reader                       reads datasets at s3://, gs:// and az:// addresses, through a cache
//	Build, Merge -> FS, policy   write a dataset from a scratch folder
//
// # Reading
//
//	shard.Dataset -> Reader -> cachedFile -> cache -> remote.Store
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
// # Writing
//
//	dataset.Builder, dataset.Merger -> FS -> scratch folder
//	                               FS -> folder -> remote.Store
//
// A build into a bucket works in a scratch folder on this machine. The bucket keeps what another
// machine needs to resume:
//
//   - Files of the dataset are uploaded as they become whole, and leave the scratch folder then. The
//     manifest comes last, so readers never see half a dataset.
//   - The checkpoint is uploaded every checkpointInterval. The bytes that the unfinished files have
//     gained since are uploaded before it, as new objects. So a shard travels at most twice.
//
// What a file is, its name says: see shardfile.RoleOf. The policy of a run decides the rest. A whole build
// claims its folder before it changes anything there: build.remote names the scratch folder that writes, and
// the settings. It asks before each request that changes something whether it still has the claim, and
// replaces only the version of an object that it knows, where the store has conditional writes. A run on
// the same machine resumes from its own checkpoints, which are newer. Any other takes the claim, and then
// the bucket's checkpoint. A part shares its folder with all other parts and with twins of itself, and a
// merge with stragglers: they know of no claim, ask the bucket each time, and write the same bytes.
//
// Ownership: whoever makes a Reader closes it. Close ends all requests, and reads that wait for them
// fail. Build and Merge own what they make.
//
// Concurrency: a Reader and its files are safe for concurrent use. An FS belongs to one run.
//
// Invariants:
//
//	I1  A file of a Reader has the bytes of one version of its object: its ETag and size are those that
//	    were seen first. Once the bucket holds another version, reading fails with shard.ErrReplaced.
//	I2  The cache holds at most ReaderOptions.CacheBytes, and a Reader at most MemoryBytes in memory.
//	    Blocks that were fetched ahead and not read are at most a share of the cache.
//	I3  The manifest alone is checked again: at most once in ReaderOptions.Interval, in the background, and
//	    after a read that met another version. Only the latter check is waited for.
//	I4  What the bucket lacks is not committed: a whole file has its name there, and never in the scratch folder.
//	I5  The scratch folder of a whole build is used only if its id is that of the claim in the bucket.
//	I6  A manifest is uploaded after all that it lists, a checkpoint after all that it needs.
package store

// Package serve is the read path: it opens datasets and serves their rows as padded batches.
//
//	manifest -> shard -> sampler -> collate -> feed
//
// Open opens the datasets, NewServer plans the memory of a server and wires them to it. A request
// becomes a feed.Query. Reader.Open turns it into a choice, which holds all that follows from the
// manifests (rows, order, steps, shape, bound), and that into a feed.Opening, whose rowStream reads
// the rows of each step: the sampler chooses them, the shards hold them, collate pads them.
//
// Invariants:
//
//	I1  No option of a server changes a batch.
//	I2  Nothing is served but the datasets that were opened: when the manifest of one is replaced,
//	    every stream ends with an error and every request is refused.
//	I3  A server holds at most Options.Memory bytes. NewServer reserves the fixed parts; each stream
//	    leases the rest before its first batch. Most of what no stream has leased keeps record
//	    batches in memory, until a stream needs it.
//
// Ownership: a Reader owns its open files and is safe for concurrent use. A rowStream belongs to
// one goroutine; what equal streams make once, for all ranks, is in Reader.shared.
package serve

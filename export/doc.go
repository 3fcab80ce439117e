// Package export writes a dataset as the files that other trainers read.
//
//	manifest -> shard -> documents -> one sink a format -> files
//
// A dataset's rows are examples: documents cut to a length. An export's sequences are whole
// documents, with their chunks joined in order. One pass over a split writes every requested
// format. The formats that are a flat file of tokens with an index (megatron, nanogpt, nanotron,
// olmo) share that file by hard links.
//
// Invariants:
//
//	I1  Every id of the dataset is in every format exactly once, in the dataset's order.
//	I2  The bytes depend only on the dataset and the format, never on the other formats,
//	    interruptions or the clock.
//	I3  A file gets its name only when it is complete: it is written under a temporary name,
//	    synced, and renamed. Indexes are written last, so that damaged data never gets one.
//	I4  Memory does not grow with the number of documents: lengths are spooled to a file. A format
//	    that holds whole rows refuses a document above MaxRowTokens and names it.
package export

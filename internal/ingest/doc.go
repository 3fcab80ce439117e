// Package ingest is the write path: it streams sources through a tokenizer into a dataset folder.
//
//	source -> example -> tokenize -> shard -> manifest
//
// Run runs one reader, some workers and one flusher. The reader frames records into jobs; a job
// goes to the workers in any order and to the flusher in the order of reading; the flusher waits
// for each in turn and decides everything that depends on order, by counts and lengths: workers make the bytes of
// rows, and a dataset.Builder writes and hashes them beside the flusher. Jobs change hands by the parcel.
// Rows go to a dataset.Writer: of a dataset, an addition to one, or a partition of a plan. A build that makes a plan
// keeps none.
//
// What knows nothing of a running build lies in packages below this one, each with a narrow door:
//
//	option                  what people choose, in one table
//	setup                   from options to what a build takes: tokenizer, sources, filters, memory plan
//	job                     documents on their way, and the lanes between the stages
//	read, source, command   the first stage: sources, their records, the command of Options.Map
//	work, example, filter   the workers: they format records, choose among them and tokenize their text
//	plan, merge             how sources are cut, and parts are joined
//	earlier                 what an earlier build left in the folder
//	report, advice          what a build says of itself, and what to do about an error
//	preview                 what is shown of a build that is not run
//	rows                    the packing of examples
//	heldout                 which documents go to val, and the file of their hashes
//
// Invariants of a build:
//
//	I1  The bytes of a dataset depend on the sources and on option.Settings, never on
//	    workers, memory, checkpoints, interruptions or the clock.
//	I2  Every example that the budgets allow is written exactly once, whatever happens in between.
//	I3  The bytes that the process holds never exceed Options.Memory:
//
//	    cap = process     runtime, program, stacks, garbage between collections
//	        + vocabulary  the tokenizer's tables, shared by all workers
//	        + caches      one word cache per worker; they shrink first where the cap is small
//	        + scratch     a worker's decoded text
//	        + source      list of inputs, decompressor, window, the staged record
//	        + small files those that were read to find their format, until their turn comes
//	        + ahead       what is decompressed before its turn, of what jobs leave
//	        + jobs        text and ids in flight, leased a job at a time for its worst case
//	        + shards      open record batches, checksums, checkpoint
//	        + list        sizes and checksums of the shards written so far
//	        + map         with Options.Map, records that wait for their answers
//	        + filters     conditions and expressions, and what their matches take
//	        + dedup       pages of the hashes of earlier documents; the others are in a file
//	        + held out    hashes of the documents in the split val
//	        + partial     the chunk that continues in the next piece
//	        + packing     with Options.Pack, the documents that wait for a row
//
//	    PlanMemory gives the numbers. Only jobs are leased and released while the build runs; the
//	    rest is reserved before it begins.
//
// Ownership: a job belongs to the reader, then to one worker, then to the flusher, which recycles
// it and releases its lease. Documents and ids are valid until then.
package ingest

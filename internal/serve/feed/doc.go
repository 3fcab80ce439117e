// Package feed serves batches to trainers: HTTP/1.1 over a unix socket or TCP, Arrow IPC bodies,
// each record batch one training batch.
//
//	request -> Query -> Backend.Open -> lease -> Stream.Next (one collate.Batch) -> writer (one piece) -> socket
//
// # Protocol
//
// GET /v1/batches answers with Content-Type application/vnd.apache.arrow.stream and
// Transfer-Encoding chunked: the Arrow IPC streaming format. Every HTTP chunk holds exactly one
// encapsulated Arrow message, so that a fast client can read a chunk's size and then its message at
// once. The first chunk is the schema, the last the end-of-stream marker (ff ff ff ff 00 00 00 00),
// followed by the empty chunk. A stream that cannot continue is cut: neither marker nor empty chunk is
// sent and the connection is closed, which every HTTP client reports as an error. The first batch
// is made before the status line is sent, so an error from the start is a 4xx or 5xx with {"error",
// "hint"}. A client whose stream was cut finds the reason by asking again from its last `next`.
//
// The connection closes after a stream. Other requests keep it alive.
//
// Every response has the header Dsload-Seal, which identifies the content that is served. It does
// not change while the server runs. A client that continues at another server compares the two. If
// the datasets are no longer those that were opened, streams are cut and every request is refused
// with 409.
//
// A batch has these columns, none of them null:
//
//	input_ids, attention_mask  list<int64>, or list<int32> with dtype=int32; every row has the
//	                           batch's length
//	labels                     the same type; for a dataset with targets, unless labels=causal, its
//	                           rows have their own common length; absent with labels=none
//	position_ids, segments     the same type and length, for packed rows only: the index within the
//	                           document; the number of the document in its row, from 1 on, 0 on
//	                           padding
//	length   int32             tokens before padding
//	example  int64             number in the split
//	row      int64             position in the order; rows repeated under tail=pad have their first
//	                           position
//	next     int64             the `start` that follows this step
//	dataset  int32             for a mix only: the index of its dataset, in the order of the mix
//	                           parameter
//
// With wire=narrow, input_ids are as wide as in the shards, the other lists are list<int32>, and
// attention_mask, and labels that are the ids, are left out: docs/feed.md says how they follow.
//
// Buffers begin at multiples of 64 bytes within a message, and so does the body.
//
// # Memory
//
// Before its first batch, a stream leases from one ledger all the memory it may ever hold: the rows
// of the largest batch in the shard's width, the writer's piece, the bucketing window, and a fixed
// part for its goroutine and the kernel's send buffer (streamOverhead). The padded batch never
// exists as a whole: the writer makes it piece by piece from the rows. So every admitted stream can
// always continue, however slow others are. While less than an eighth of the ledger's bytes for
// streams is taken, besides what all ranks of its world take if that leaves room for as many, or where
// it adds little to what the stream needs, a stream also gets a larger piece, a larger send buffer and,
// where batches are large and take a search, memory to make some ahead: as much of this as fits
// (extras). A stream that does not fit waits for AdmitWait and is then refused with 503; one that would
// not fit an idle server is refused at once, with 413.
//
// Each connection that is not a stream has a slot, and the memory of all slots is reserved when the
// server is made (connPool). A connection that finds no slot waits; meanwhile the one that has been
// quiet longest is closed. Manifests are sent from memory that all clients share. Every answer has
// a deadline.
//
// # Concurrency
//
// Each stream has its own goroutine, which takes its connection over from net/http, and another one
// that makes batches ahead if it leased memory for them. Shutdown waits for them, except for those
// whose reads never return.
//
// Invariants:
//
//	I1  the bytes of the body depend only on the dataset and the query, not on pieces, prefetch or
//	    speed;
//	I2  the end-of-stream marker is sent only after the last batch of the query;
//	I3  a socket of a live server is never taken over.
package feed

// Package feed serves batches to trainers: HTTP/1.1 over a unix socket or TCP, Arrow IPC bodies,
// each record batch one training batch.
//
//	request -> Query -> Backend.Open -> lease -> Stream.Next (one collate.Batch) -> writer (one piece) -> socket
//
// # Protocol
//
// GET /v1/batches answers with Content-Type application/vnd.apache.arrow.stream and
// Transfer-Encoding chunked: the Arrow IPC streaming format. Every HTTP chunk holds exactly one
// encapsulated Arrow message, so that a client that wants speed may read a chunk's size and then
// its message in one piece. The first chunk is the schema, the last the end-of-stream marker (ff ff
// ff ff 00 00 00 00), followed by the empty chunk. A stream that cannot go on is cut: neither
// marker nor empty chunk is sent and the connection is closed, which every HTTP client reports as
// an error. The first batch is made before the status line is sent, so what is wrong from the start
// is a 4xx or 5xx with {"error", "hint"}; a client whose stream was cut finds the reason by asking
// again from its last `next`.
//
// The connection closes after a stream. Other requests keep it alive.
//
// Every response has the header Dsload-Seal: a name of the content that is served, which does not
// change while the server runs. A client that continues at another server compares it with the
// first one's. Where the datasets are no longer what was opened, streams are cut and every request
// is refused with 409.
//
// A batch has these columns, none of them null:
//
//	input_ids, attention_mask          list<int64>, or list<int32> with dtype=int32; every row has the batch's length
//	labels the same; for a dataset with targets, unless labels=causal, its rows have their own
//	common length; absent with
//	                                   labels=none
//	position_ids, segments the same as input_ids, for packed rows only: index within the document;
//	number of the document in its row from 1 on,
//	                                   0 on padding
//	length int32                       tokens before padding
//	example int64                      number in the split
//	row int64 position in the order; under tail=pad, rows that were repeated show their first
//	position next int64 the `start` that follows this step dataset int32 for a mix only: the number
//	of its dataset, in the order of the mix parameter
//
// Buffers begin at multiples of 64 bytes within a message, and so does the body.
//
// # Memory
//
// A stream leases from one ledger, before its first batch, everything it may ever hold: the rows of
// one batch in the shard's width at their worst, the writer's piece, the bucketing window, and a
// fixed part for its goroutine and the kernel's send buffer (streamOverhead). The padded batch
// never exists as a whole: the writer makes it piece by piece from the rows. So every stream that
// was let in can always go on, however slow others are. While less than an eighth of what the
// ledger has for streams is taken, a stream also gets a larger piece, a larger send buffer and
// batches to work ahead with (prefetch). A stream that does not fit waits for AdmitWait and then is
// refused with 503.
//
// Each connection that is no stream has a slot, and the memory of all slots is reserved when the
// server is made (connPool). A connection that finds no slot waits; meanwhile the one that has been
// quiet for longest is closed. Manifests are sent from memory that all clients share. Every answer
// has a deadline.
//
// # Concurrency
//
// Each stream has a goroutine of its own, which takes its connection over from net/http, and one
// more that makes batches ahead where it leased them. Shutdown waits for them, but for those whose
// reads never return.
//
// Invariants:
//
//	I1  bytes of the body depend on the dataset and the query only: not on pieces, prefetch, or speed;
//	I2  the end-of-stream marker is sent only after the last batch of the query;
//	I3  a socket of a live server is never taken over.
package feed

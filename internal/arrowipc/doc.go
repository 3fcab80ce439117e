// Package arrowipc writes and reads the messages of an Arrow IPC stream (arrow.apache.org/docs/format/Columnar.html):
// the schema, record batches, the end. It knows the columns that feeds and exports have, numbers and lists
// of them, none of which is null.
//
//	[]Field, metadata -> AppendSchema
//	rows, values, sizes of buffers -> AppendBatch, then the buffers, each padded to Alignment
//
// Reader reads what these write. Equal calls give equal bytes. Package shardfile lays out its files itself.
package arrowipc

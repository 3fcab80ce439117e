// Package columnar reads files of columns, parquet and Arrow IPC, row by row in bounded memory.
//
//	io.ReaderAt -> OpenParquet, OpenArrow -> File (schema, groups of rows)
//	File.NewRows -> Seek(group) -> Next -> Text or AppendJSON
//
// Only the wanted columns are read: in parquet one page of each at a time, in Arrow a stretch of
// each buffer. A row is the text of one column, or the JSON object of several. Metadata is read in the
// same way: a part of a footer at a time, of which only what the wanted columns need is kept.
//
// The package has readers of its own since the usual libraries do not keep what a build promises:
// one adds ten megabytes to every process before its first instruction, another panics on damaged
// files and allocates what a damaged footer claims.
//
// Ownership: what AppendJSON appends is the caller's. Concurrency: a File is immutable; Rows
// belong to one goroutine.
//
// Invariants:
//
//	I1  Rows hold at most File.MemoryBytes bytes, or give a *SizeError: never what a header merely claims.
//	    What is kept of the metadata is at most Options.MaxMetadata bytes.
//	I2  A damaged file is an error that matches ErrCorrupt, never a panic, and never fewer rows than
//	    its metadata says.
package columnar

// Package source is where text comes from: arguments (paths, globs, folders, "-", synth://
// addresses) become an ordered list of inputs, and each input, freed of its compression, becomes a
// sequence of records with positions from which a later run continues.
//
//	arguments -> listing.Lister -> listing.File -> Open -> Set (inputs: format, compression, size)
//	Set.Reader(position) -> Next, Next, … -> io.EOF
//	input -> decompressor -> frame.Window -> frame.Framer -> record
//
// A record is the raw bytes of one document: a line, an article, a file, a JSON line, a CSV record.
// What its bytes mean is the business of package example. Records of formats that can be cut
// anywhere come in pieces where they are longer than Options.PieceBytes.
//
// Ownership: Next appends to a buffer of the caller and keeps no reference to it. Record.Columns is
// shared and must not be changed.
//
// Concurrency: a Set is immutable and may be shared; a Reader belongs to one goroutine at a time.
// A file of some size is read or decompressed on a goroutine of its own, which Close ends.
//
// Invariants:
//
//	I1  Records, pieces and positions depend on the content of the inputs and on Options alone,
//	    never on how many bytes a read returns, on buffer sizes or on where an earlier reader
//	    stopped.
//	I2  For every position p that a reader gives, Set.Reader(p) yields exactly the records that the
//	    first reader yields after p.
//	I3  A set and a reader of it hold at most Set.MemoryBytes() bytes, whatever the input says and
//	    however many inputs there are: beyond maxListed of them, the list lies in a scratch file,
//	    and positions and lines of sources name folders and globs instead of files.
//	I4  A document ordinal is never used twice. Bad records use one up, so that skipping them renumbers nothing.
//	I5  An input that changed since the position was taken is an error, never other records.
package source

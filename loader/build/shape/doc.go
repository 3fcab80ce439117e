// Package shape decides which documents stay in a dataset.
//
// A Filter judges documents one by one: their fields (Where), their text (Match, NoMatch), their
// length, and a sample by content hash. It is pure: the same document always has the same fate. A
// Seen remembers the documents that stayed and recognizes copies of them, exact or near; it depends
// on order, and so belongs to the stage that sees documents in the order of the sources.
//
//	record -> Filter.Fields -> text -> Filter.Text, Sketcher -> Seen -> dataset
//
// Invariants:
//
//	I1  What a Filter and a Seen decide depends on their options and the documents alone, never on
//	    memory, workers or interruptions.
//	I2  Memory is fixed: a Seen keeps its hashes in a file, of which a fixed number of pages is in
//	    memory, so it is complete for any number of documents.
//	I3  What a Seen holds after Restore with the length and checksum of a Mark is what it held then.
package shape

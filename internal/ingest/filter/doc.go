// Package filter decides which documents stay in a dataset.
//
// A Filter judges documents one by one: their fields (Where), their text (Match, NoMatch), their
// length, and a sample by content hash. It is pure: it always judges the same document alike. A
// Seen remembers the documents that stayed and recognizes exact or near copies of them. It depends
// on order, and so belongs to the stage that sees documents in the order of the sources.
//
//	record -> Filter.Fields -> text -> Filter.Text, Sketcher -> Seen -> dataset
//
// Invariants:
//
//	I1  The decisions of a Filter and a Seen depend only on their options and the documents, never
//	    on memory, workers or interruptions.
//	I2  Memory is fixed: a Seen keeps its hashes in a file and a fixed number of its entries in
//	    memory, so it works for any number of documents.
//	I3  After Restore, a Seen holds exactly what it held at the Mark.
package filter

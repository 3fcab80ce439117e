// Package frame finds the records in the text of an input: lines, articles, files, JSON values, CSV
// records.
//
//	text -> Window -> Framer -> Record
//
// A Window holds the part of the text that is in memory and a checksum over what was consumed of it. A
// Framer looks at the window, appends a record, or a piece of a long one, to a buffer of its caller, and
// consumes its bytes. Where it stands is a few numbers: the window's offset, a Place and a State.
//
// Concurrency: a Window and its Framer belong to one goroutine at a time.
//
// Invariants:
//
//	I1  Records and pieces depend on the text and on Options alone, never on how many bytes a read
//	    returns or on the size of the window.
//	I2  A Framer that is restored at an offset, Place and State yields what the first one yields after
//	    them.
//	I3  A window grows to the largest size that it was given, and holds no more.
package frame

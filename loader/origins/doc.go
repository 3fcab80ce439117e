// Package origins records where the documents of a dataset came from, and finds it again.
//
// A document has an ordinal, which every row of a dataset carries. A file of origins leads from the
// ordinal to the input and the record in it: Writer makes the file's pages while documents are read
// in order, and File finds one document with a search over pages. Neither holds more than a page.
//
// # The file, exactly
//
// The file is the magic "DSLORIG\x01" and then pages of PageBytes bytes, the last one perhaps
// shorter. Integers are little-endian, varints those of encoding/binary. A page is
//
//	bytes 0-3    the CRC-32 (IEEE) of the page's bytes from 4 to its used length
//	bytes 4-7    the used length; what follows it in the page is zero
//	bytes 8-15   the ordinal of its first document
//	bytes 16-23  the record before its first document, 0 at the beginning of an input
//	then         the name of the input as a varint of its length and its bytes
//	then         operations
//
// An operation is a varint whose two lowest bits are its kind and whose others are its value v:
//
//	0  v documents, each one record after the one before
//	1  v is a zigzag difference of records; a varint n follows: n documents, each so far after the
//	   one before
//	2  another input: v is how many bytes its name shares with the name before; a varint and as many
//	   bytes follow. Records begin again at 0
//	3  v ordinals without a document
//
// # Invariants
//
//	I1  The pages depend on the calls of Add alone, not on where the Writer was saved and restored.
//	I2  The first ordinals of pages rise, so that a document's page is found by a binary search.
package origins

import "errors"

// ErrCorrupt means that a file is not one of origins.
var ErrCorrupt = errors.New("origins: the file is corrupt")

// Magic begins the file.
const Magic = "DSLORIG\x01"

const (
	// PageBytes is the size of a page.
	PageBytes = 8 << 10
	// maxName is the longest name of an input; longer ones are cut.
	maxName = 3 << 10

	headBytes = 24 // before the name
	opBytes   = 21 // the longest operation besides a name
)

// The kinds of operations.
const (
	opNext = iota
	opStep
	opInput
	opGap
)

// Origin is where a document came from.
type Origin struct {
	Source string // the input, as the build names it
	Record int64  // counted from 1, as the format counts: lines, records after the header, documents
}

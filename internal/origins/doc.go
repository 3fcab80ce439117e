// Package origins records and finds where the documents of a dataset came from.
//
// A document has an ordinal, which every row of a dataset carries. A file of origins maps the
// ordinal to an input and a record in it. Writer makes the file's pages while documents are read in
// order, and File finds a document with a search over pages. Neither holds more than a page in
// memory.
//
// # The file, exactly
//
// The file is the magic "DSLORIG\x01" and then pages of PageBytes bytes, the last one perhaps
// shorter. Integers are little-endian; varints are those of encoding/binary. A page has
//
//	bytes 0-3    the CRC-32 (IEEE) of the page's bytes from 4 to its used length
//	bytes 4-7    the used length; the rest of the page is zero
//	bytes 8-15   the ordinal of its first document
//	bytes 16-23  the record before its first document, 0 at the beginning of an input
//	then         the name of the input as a varint of its length and its bytes
//	then         operations
//
// An operation is a varint whose two lowest bits are its kind and whose others are its value v:
//
//	0  v documents, each one record after the previous one
//	1  v is a zigzag difference of records; a varint n follows: n documents, each by that difference
//	   after the previous one
//	2  another input: v is the number of leading bytes that its name shares with the previous name;
//	   a varint and as many bytes follow. Records start again at 0
//	3  v ordinals without a document
//
// # Invariants
//
//	I1  The pages depend on the calls of Add alone, not on where the Writer was saved and restored.
//	I2  The first ordinals of pages increase, so a binary search finds a document's page.
package origins

import "errors"

// ErrCorrupt means that a file of origins is damaged or is not one.
var ErrCorrupt = errors.New("origins: the file is corrupt")

// Magic begins the file.
const Magic = "DSLORIG\x01"

const (
	// PageBytes is the size of a page.
	PageBytes = 8 << 10
	// maxName is the length of the longest name of an input; longer ones are truncated.
	maxName = 3 << 10

	headBytes = 24 // before the name
	opBytes   = 21 // the longest operation without its name
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
	Record int64  // counted from 1, in the format's way: lines, records after the header, documents
}

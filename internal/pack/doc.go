// Package pack fills rows of a fixed length with documents: arithmetic over lengths, no I/O.
//
// A Packer takes the lengths of items in order and returns rows of pieces. A Piece is a run of an
// item's tokens. The policies are those of TRL's pack_dataset; for the items of one call they make
// exactly the same rows:
//
//	wrapped    items one after another, cut anywhere; all rows are full but the last
//	bfd        best fit decreasing of whole items; what an item has beyond the length is dropped
//	bfd_split  the same, but longer items are first split into pieces of the length
//
// # The order, exactly
//
// This section is normative, so that a reader in another language packs the same rows. Items
// without tokens are skipped. For bfd and bfd_split the pieces are placed longest first; pieces of
// equal length keep the order of the items and of the tokens within an item. A piece goes into the
// row with the least room that holds it; among rows with equal room, into the one that has had this
// room for the longest time. If there is none, it opens a row. Rows are in the order in which they
// were opened, pieces in the order in which they were placed.
//
// Callers bound memory by packing windows of a fixed size, so that windows and rows depend on the
// items alone.
//
// # Invariants
//
//	I1  no row has more than length tokens, and no row or piece is empty;
//	I2  every token is in exactly one piece, except that bfd drops those beyond the length of an
//	    item and counts them;
//	I3  the rows depend on the lengths and the policy alone.
//
// A Packer belongs to one goroutine and reuses its memory: rows are valid until the next call.
package pack

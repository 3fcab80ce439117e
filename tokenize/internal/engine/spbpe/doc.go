// Package spbpe encodes with byte pair merges over whole text, without a pre-tokenizer, as
// SentencePiece-style models do (Llama 2, Phi-3, Mistral, Gemma): spaces are the character U+2581,
// and merges may in principle cross anything.
//
// Cutting. Merging takes the best (rank, position) pair until there is none. A symbol covers both
// sides of a boundary x|y between two characters only after a merge (L, R) there, with L ending in
// x and R beginning with y. If the table has no such merge, every merge lies on one side, the
// merges of a side depend on that side only, and their order is as if the side were alone. So the
// ids of the text are the ids of both sides, one after the other. New computes from the loaded
// merges which pairs of characters may join; text is cut everywhere else, and the chunks are
// cached.
//
//	I1  Joining more than necessary is always exact, so tables may be coarse: ASCII pairs are
//	    grouped into six planes, other characters have two flags (ends a left side, begins a right
//	    side).
//	I2  Characters without a piece take part in no merge of a tokenizer.json: New refuses models
//	    in which byte or unknown tokens merge. In SentencePiece models they may merge.
//	I3  If some byte has no token, neighbouring unknown characters are never cut apart, since they
//	    may fuse.
//	I4  Inside a window U+2581 is written as a space: both are the same character to the model.
package spbpe

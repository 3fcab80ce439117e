// Package spbpe encodes with byte pair merges over whole text, without a pre-tokenizer, as
// SentencePiece-style models do (Llama 2, Phi-3, Mistral, Gemma): spaces are the character U+2581,
// and merges may in principle cross anything.
//
// Cutting. Merging takes the best (rank, position) pair until there is none. A symbol covers both
// sides of a boundary x|y between two characters only after a merge (L, R) with L ending in x and R
// beginning with y happened there. Where the table has no such merge, every merge lies on one side,
// what is available on a side depends on that side only, and the order among the merges of a side
// is as if it were alone. So the ids of the text are the ids of its sides, one after the other. New
// computes from the merges of whatever file is loaded which pairs of characters may join; text is
// cut everywhere else, and the chunks are cached.
//
//	I1  Joining more than necessary is always exact, so tables may be coarse: ASCII pairs are
//	    grouped into six planes, other characters have two flags (ends a left side, begins a right
//	    side).
//	I2  Characters that are no piece take part in no merge of a tokenizer.json: New refuses models
//	    in which byte or unknown tokens merge. In SentencePiece models they may, and do so here.
//	I3  Where not every byte has a token, unknown characters next to each other are never cut apart, as they may fuse.
//	I4  Inside a window U+2581 is written as a space: both are the same character to the model.
package spbpe

// Package wordpiece encodes with WordPiece vocabularies after Hugging Face's BertNormalizer and
// BertPreTokenizer, as BERT and its relatives do: words are cut at white space and punctuation and
// spelled by the longest pieces that fit, from the left.
//
// Chunks and their cache. Raw text is cut at white space, around punctuation and around Chinese
// characters; the ids of a chunk between cuts depend on its bytes alone. The normalizer works on
// single characters, except that canonical ordering moves marks, and marks never move across a cut
// (white space, punctuation and Chinese characters have combining class 0).
//
//	I1  The cache's key is the raw chunk, with ASCII letters in lower case if the normalizer
//	    lowers them; lowering ASCII first does not change the normalizer's result. A hit skips
//	    everything else.
//	I2  A chunk's ids are the concatenation of its words' ids; a word that cannot be spelled is
//	    one unknown token.
//	I3  The tables of characters come from the reference implementation, which follows its own
//	    Unicode versions.
package wordpiece

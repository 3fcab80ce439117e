// Package wordpiece encodes with WordPiece vocabularies after Hugging Face's BertNormalizer and
// BertPreTokenizer, as BERT and its relatives have them: words are cut at white space and
// punctuation and spelled by the longest pieces that fit, from the left.
//
// Chunks and their cache. Raw text is cut at white space, around punctuation and around Chinese
// characters; the ids of what lies between depend on its bytes alone. Everything that the
// normalizer does is done to single characters, except that canonical ordering moves marks, and
// marks never move across what chunks are cut at (white space, punctuation and Chinese characters
// have combining class 0).
//
//	I1  The cache's key is the raw chunk, with ASCII letters in lower case where the normalizer
//	    makes them so: a hit skips everything, and lower-casing ASCII first does not change what the
//	    normalizer makes of a chunk.
//	I2  A chunk's ids are the concatenation of its words' ids; a word that cannot be spelled is one unknown token.
//	I3  What a character becomes is a table taken from the reference implementation, whose Unicode versions are its own.
package wordpiece

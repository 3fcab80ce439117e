// Package unigram encodes with a Unigram language model: of all ways to write a word in pieces, the
// one with the best sum of scores.
//
// It computes a whole pipeline at once: Nmt and Precompiled normalizers, white space handling,
// Metaspace, and the model, as Hugging Face's tokenizer.json has them (T5, FLAN-T5, mT5, XLM-R and
// the like), and the search of SentencePiece .model files.
//
// Words and their cache. Raw text is cut at ASCII white space. The ids of a raw word depend on its
// bytes alone, with one exception: the Precompiled normalizer works on grapheme clusters of less
// than six bytes, and a cluster may reach across the space before the word, if the word begins with
// a character that joins the one before it. Such words are computed in place and not cached (or,
// where chunks include the space, under another key). New makes sure that no entry of the character
// map begins with a separator or a character that joins what follows it, so that nothing else
// crosses. Words of SplitWords are cut further, where no piece crosses: see inside.go.
//
//	I1  A hit skips normalization, split and search; the cache's key is the raw word.
//	I2  Sums are formed from the word's beginning in float64, in the order of the reference, and a
//	    later path replaces an earlier one only where it is strictly better: equal scores fall the
//	    same way.
//	I3  Scores are the caller's: for tokenizer.json they must be read with jsonx.ParseFloat.
//	I4  A SentencePiece model (SplitNone) adds up in float32 from the beginning of the text, and
//	    takes sums relative to a new origin where they grow large. How a word's ties fall so depends
//	    on all that comes before it, which its bytes do not tell: no cache, and no cuts either,
//	    since after a cut sums would begin at 0.
//	I5  Where all paths of that search meet, the path so far is final; only its sum goes on.
package unigram

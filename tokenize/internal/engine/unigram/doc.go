// Package unigram encodes with a Unigram language model: it splits a word into the pieces with the
// best sum of scores.
//
// It computes a whole pipeline at once: Nmt and Precompiled normalizers, white space handling,
// Metaspace, and the model, as Hugging Face's tokenizer.json has them (T5, FLAN-T5, mT5, XLM-R and
// the like), and the search of SentencePiece .model files.
//
// Words and their cache. Raw text is cut at ASCII white space. The ids of a raw word depend on its
// bytes alone, with one exception: the Precompiled normalizer works on grapheme clusters of less
// than six bytes, and a word that begins with a combining character shares a cluster with the space
// before it. Such words are not cached (or, if chunks include the space, under another key). New
// makes sure that no entry of the character map begins with a separator or with a character that
// joins what follows it, so that nothing else spans words. Words of SplitWords are cut further,
// where no piece spans the cut: see inside.go.
//
//	I1  The cache's key is the raw word; a hit skips normalization, split and search.
//	I2  Sums are added from the word's beginning in float64, in the order of the reference, and a
//	    later path replaces an earlier one only if it is strictly better, so ties end as there.
//	I3  The caller must read the scores of a tokenizer.json with jsonx.ParseFloat.
//	I4  A SentencePiece model (SplitNone) adds in float32 from the beginning of the text, and
//	    rebases sums that grow large. So how a word's ties end depends on all text before it:
//	    there is no cache, and no safe cut, since sums would begin at 0 after it.
//	I5  Where all paths of that search meet, the path so far is final; only its sum matters from
//	    there.
package unigram

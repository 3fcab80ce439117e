// Package train learns vocabularies from text: byte-level BPE, WordPiece and Unigram, written as a
// tokenizer.json that Hugging Face's tokenizers load and encode with equally.
//
//	text -> normalizer -> pre-tokenizer -> word counts -> merges or pieces -> tokenizer.json
//
// The written file names the same normalizers and pre-tokenizers, so training sees the words that
// encoding will see.
//
//	I1  Equal texts in equal order with equal options give equal bytes: no step depends on time,
//	    threads or the order of a map.
//	I2  Memory is bounded by Options.MaxMemory plus a constant: if the table of words would exceed
//	    it, rare words are dropped by a rule that depends on the text alone (see wordTable).
//
// Byte-level BPE and WordPiece merge the most frequent pair of neighbours until the vocabulary is
// full (Sennrich, Haddow and Birch 2016; Schuster and Nakajima 2012 as Hugging Face trains it),
// with pair counts updated in place and a heap. Unigram begins with frequent substrings and
// alternates expectation maximization with pruning (Kudo 2018).
package train

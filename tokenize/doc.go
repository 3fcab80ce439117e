// Package tokenize turns text into token ids and back, exactly as the reference implementations do:
// Hugging Face tokenizers for tokenizer.json, tiktoken for .tiktoken ranks, sentencepiece for
// .model files.
//
// # Data flow
//
//	file -> spec -> pipeline (added tokens, normalizer, pre-tokenizer, model) -> Encoder -> ids -> Decode -> text
//
// A file is read once into a description of its components (internal/spec). Where a fast engine
// computes their combination (byte-level BPE, SentencePiece-style BPE, Unigram, WordPiece), that
// engine takes the text; otherwise the components are evaluated one after the other.
//
// # Which call
//
// Encode and Decode suit an occasional text, EncodeBatch many at once. A program that streams text
// keeps an Encoder for each goroutine and appends to slices of its own, which allocates nothing.
// AppendTokensOffsets also returns where each token lies in its text.
//
// # Ownership and concurrency
//
// A Tokenizer is immutable and safe for concurrent use. An Encoder belongs to one goroutine; it
// owns a cache of fixed size and scratch buffers, and it allocates nothing in steady state. It
// never keeps the text passed in.
//
// # Invariants
//
//	I1  Equal text gives equal ids, whatever was encoded before and whatever the cache's size.
//	I2  A document cut at positions that SafeCut returns gives, piece by piece, the ids of the
//	    whole.
//	I3  Files are untrusted: a bad one gives an error that says where; memory is bounded by the
//	    file's size and by Options.MaxMemory.
//	I4  An unknown component gives an error that names it, and a member without effect gives a
//	    warning: ids never differ silently.
//
// Text is UTF-8. Each maximal ill-formed subpart counts as one U+FFFD, as with Python's
// errors="replace", except where the split works on bytes (see docs/tokenization.md).
package tokenize

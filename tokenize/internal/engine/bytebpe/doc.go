// Package bytebpe encodes text with byte-level BPE vocabularies: GPT-2, RoBERTa, cl100k, Llama 3,
// Qwen, o200k.
//
// Data flow of Encoder.Append, window by window of 4 KiB:
//
//	text -> class masks, a bit a byte (classify) -> boundaries of pre-tokens (bounds) -> positions (flatten)
//	     -> keys and cache lines, prefetched (prepare) -> ids of cached words (lookup) -> misses: merging (merger)
//
// Short texts share a window in Encoder.AppendEach; each is cut by itself.
//
// A Model is immutable and shared. An Encoder belongs to one goroutine, allocates all of its memory
// at creation, and keeps no reference to text or ids.
//
// Invariants:
//
//	I1  The ids of a pre-token depend on its bytes alone, so caching them by their bytes is exact.
//	I2  A window begins where a pre-token does, and only boundaries that later text cannot move
//	    are used (settled). The patterns never look back, so a window is cut as the whole text is.
//	I3  The fast scanners agree with the plain one (tokenEnd) on every text, valid UTF-8 or not.
//	I4  Long words are merged in overlapping chunks whose results are joined only at tokens that
//	    both contain; long.go proves that this is exact.
//	I5  Words are cut inside only where no token can lie across (inside.go).
//	I6  Each kernel in assembly has a twin in Go with equal results; the build tag purego selects
//	    the twins.
package bytebpe

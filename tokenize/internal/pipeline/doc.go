// Package pipeline evaluates any combination of components: added tokens, normalizer, pre-tokenizer
// and model, one after the other, as Hugging Face does. It is exact for all of them and linear in
// the text, but slower than an engine, which serves one combination. If an engine covers the part
// after the normalizer, it takes its place as Segments.
//
//	text -> added tokens -> segment -> normalizer -> added tokens (normalized) -> pre-tokenizer ->
//	piece -> cache or model -> ids
//
//	I1  A model's ids depend on the piece's bytes alone, so a cache keyed by them is exact.
//	I2  Models take O(n log n) time for a piece of n bytes.
package pipeline

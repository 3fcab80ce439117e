package ingest

import (
	"math"
	"math/bits"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
)

// expectedExamples returns a lower bound, by rule of thumb, of the examples that a build can make;
// 0 if nothing bounds them.
//
//	textBytes  size of the sources' text, 0 if unknown
//
// An example holds at most maxLength tokens, a token of text some four bytes; documents that are
// truncated or dropped give one example each whatever their size, so there the estimate is lower.
//
// The size is taken by its power of two, so that a source that is fixed under an unfinished build
// chooses the same documents.
func expectedExamples(o *option.Options, textBytes int64) int64 {
	if textBytes > 0 {
		textBytes = 1 << (bits.Len64(uint64(textBytes)) - 1)
	}
	const bytesPerToken = 4
	perExample := int64(o.MaxLength) * bytesPerToken
	if o.Overflow != example.Chunk {
		perExample *= 8
	}
	least := int64(math.MaxInt64)
	if o.MaxExamples > 0 {
		least = min(least, o.MaxExamples+o.MaxValExamples)
	}
	if o.MaxTokens > 0 {
		least = min(least, o.MaxTokens/int64(o.MaxLength))
	}
	if o.MaxBytes > 0 && (textBytes == 0 || o.MaxBytes < textBytes) {
		textBytes = o.MaxBytes
	}
	if textBytes > 0 {
		least = min(least, textBytes/perExample)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return max(1, least)
}

package shardfile

import "math/bits"

// The histogram of lengths has one bucket for each length below 128, and above that 64 equal
// buckets from each power of two to the next. So a bucket's width is at most 1/64 of its lower
// bound, and every power of two begins a bucket.
const (
	exactLengths = 128
	perOctave    = 64
	NumBuckets   = exactLengths + (28-7)*perOctave + 1 // the last bucket holds MaxRowTokens = 2^28 alone
)

// LengthBucket returns the bucket of a length in 0..maxRowTokens.
func LengthBucket(n int) int {
	if n < exactLengths {
		return n
	}
	octave := bits.Len(uint(n)) - 8 // 128..255 is octave 0
	return exactLengths + octave*perOctave + n>>(octave+1) - perOctave
}

// BucketLow returns the smallest length of a bucket.
func BucketLow(b int) int64 {
	if b < exactLengths {
		return int64(b)
	}
	octave, sub := (b-exactLengths)/perOctave, (b-exactLengths)%perOctave
	return int64(perOctave+sub) << (octave + 1)
}

// Stats are the totals over a split's rows.
type Stats struct {
	Rows, Tokens, LabelTokens       int64
	MinLength, MaxLength, MaxLabels int64
	Hist                            [NumBuckets][2]int64 // rows, tokens
}

func (s *Stats) Add(length, labels int) {
	if s.Rows == 0 || int64(length) < s.MinLength {
		s.MinLength = int64(length)
	}
	s.MaxLength = max(s.MaxLength, int64(length))
	s.MaxLabels = max(s.MaxLabels, int64(labels))
	s.Rows++
	s.Tokens += int64(length)
	s.LabelTokens += int64(labels)
	h := &s.Hist[LengthBucket(length)]
	h[0]++
	h[1] += int64(length)
}

// Lengths returns the histogram in the manifest's form.
func (s *Stats) Lengths() [][3]int64 {
	out := [][3]int64{}
	for b, h := range s.Hist {
		if h[0] > 0 {
			out = append(out, [3]int64{BucketLow(b), h[0], h[1]})
		}
	}
	return out
}

package feed

import (
	"math/bits"
	"sync/atomic"
)

// lengthClasses is the number of classes of lengths, two per octave.
const lengthClasses = 2 * 32

// maxBars is the maximum number of bars of a histogram.
const maxBars = 48

// lengthCounts counts batches by the class of their length.
type lengthCounts [lengthClasses]atomic.Uint32

// lengthTotals counts the batches of ended streams.
type lengthTotals [lengthClasses]int64

// lengthClass returns the class of a length: 0 for 0 and 1, one more at each power of two and
// halfway to the next.
func lengthClass(n int) int {
	if n < 2 {
		return 0
	}
	octave := bits.Len(uint(n)) - 1
	return min(2*octave-1+n>>(octave-1)&1, lengthClasses-1)
}

// classStart returns the least length of a class.
func classStart(class int) int64 {
	if class == 0 {
		return 0
	}
	octave := (class + 1) / 2
	return int64(2+(class+1)%2) << (octave - 1)
}

func (c *lengthCounts) add(length int) { c[lengthClass(length)].Add(1) }

func (c *lengthCounts) addTo(t *lengthTotals) {
	for i := range c {
		t[i] += int64(c[i].Load())
	}
}

// servedBars returns the batches sent so far by length, from the first class that has any to the
// last.
func (l *live) servedBars() [][3]int64 {
	s := l.server
	s.mu.Lock()
	total := l.retired
	for _, st := range s.streams {
		st.stats.lengths.addTo(&total)
	}
	s.mu.Unlock()
	out := [][3]int64{}
	for i, n := range total {
		if n > 0 || len(out) > 0 {
			out = append(out, [3]int64{classStart(i), classStart(i+1) - 1, n})
		}
	}
	for len(out) > 0 && out[len(out)-1][2] == 0 {
		out = out[:len(out)-1]
	}
	return out
}

// lengthBars merges the histograms of each dataset's first split into bars of equal width.
func lengthBars(about []About) [][3]int64 {
	var longest int64
	for _, a := range about {
		if len(a.Splits) > 0 {
			longest = max(longest, a.Splits[0].Longest)
		}
	}
	width := niceWidth(longest + 1)
	counts := make([]float64, longest/width+1)
	for _, a := range about {
		if len(a.Splits) == 0 {
			continue
		}
		for _, b := range a.Splits[0].Lengths {
			low, high := min(b[0], longest), min(b[1], longest)
			for at := low; at <= high; at = (at/width + 1) * width { // a wide bucket reaches into several bars
				part := min(high, (at/width+1)*width-1) - at + 1
				counts[at/width] += float64(b[2]) * float64(part) / float64(high-low+1)
			}
		}
	}
	out := make([][3]int64, 0, len(counts))
	for i, n := range counts {
		out = append(out, [3]int64{int64(i) * width, min(int64(i+1)*width-1, longest), int64(n + 0.5)})
	}
	return out
}

// niceWidth returns the least of 1, 2, 5, 10, … with which n lengths make at most maxBars bars.
func niceWidth(n int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if k*step*maxBars >= n {
				return k * step
			}
		}
	}
}

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/dsload/dsload/shard"
)

const (
	// maxBins is the maximum number of lines of a histogram.
	maxBins = 10
	// minBar and maxBar bound the width of the longest bar in columns.
	minBar, maxBar = 10, 40
)

// eighths are blocks of one to eight eighths of a column.
var eighths = []rune("▏▎▍▌▋▊▉█")

// histogram draws the lengths of rows, one line per range from that of the shortest row to the longest one, at most
// width columns wide.
func histogram(lengths [][3]int64, longest int64, width int) string {
	if len(lengths) == 0 {
		return ""
	}
	shortest, _ := shard.BucketBounds(lengths[0][0])
	step := binWidth(shortest, longest)
	first := shortest / step
	counts := make([]float64, longest/step-first+1)
	for _, bucket := range lengths {
		low, high := shard.BucketBounds(bucket[0])
		high = min(high, longest)
		for at := low; at <= high; at = (at/step + 1) * step { // a wide bucket spans several bins
			part := min(high, (at/step+1)*step-1) - at + 1
			counts[at/step-first] += float64(bucket[1]) * float64(part) / float64(high-low+1)
		}
	}
	most := 0.0
	ranges, figures := make([]string, len(counts)), make([]string, len(counts))
	rangeWidth, figureWidth := 0, 0
	for i, n := range counts {
		most = max(most, n)
		from := (first + int64(i)) * step
		ranges[i] = formatCount(from)
		if to := min(from+step-1, longest); to > from {
			ranges[i] += "–" + formatCount(to)
		}
		figures[i] = formatCount(int64(math.Round(n)))
		rangeWidth, figureWidth = max(rangeWidth, columns(ranges[i])), max(figureWidth, columns(figures[i]))
	}
	bar := min(maxBar, max(minBar, width-rangeWidth-figureWidth-6))
	var b strings.Builder
	for i, n := range counts {
		fmt.Fprintf(&b, "  %*s  %*s  %s\n", rangeWidth, ranges[i], figureWidth, figures[i], barOf(n/most, bar))
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// barOf returns a bar of the given share of the columns. A share above 0 is always visible.
func barOf(share float64, columns int) string {
	n := int(math.Round(share * float64(8*columns)))
	if n == 0 && share > 0 {
		n = 1
	}
	bar := strings.Repeat("█", n/8)
	if n%8 > 0 {
		bar += string(eighths[n%8-1])
	}
	return bar
}

// binWidth returns the smallest of 1, 2, 5, 10, … of which at most maxBins bins hold all lengths.
func binWidth(shortest, longest int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if longest/(k*step)-shortest/(k*step) < maxBins {
				return k * step
			}
		}
	}
}

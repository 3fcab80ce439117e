package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/units"
)

// The position of the plot of a chart of 400 by 246 units.
const (
	plotLeft, plotRight = 44, 384
	plotTop, plotBottom = 26, 206
	maxBins             = 40
)

// mark is a length that a histogram points out.
type mark struct {
	name string
	at   float64
}

func (s Summary) marks() []mark {
	return []mark{{"mean", s.Mean}, {"median", float64(s.P50)}, {"95%", float64(s.P95)}, {"longest", float64(s.Max)}}
}

// chart is a histogram of lengths in the form that the template draws.
type chart struct {
	Unit   string
	Label  string // its sentence
	Log    bool
	Bars   []bar
	XTicks []tick
	YTicks []tick
	Marks  []drawnMark
}

type bar struct {
	X, Y, W, H string
	From, To   int64
	Count      int64
}

type tick struct{ At, Text string }

type drawnMark struct {
	X, Text string
	Dashes  int // numbers the dashes of its line, from 0
}

// histogram puts {length, count} pairs into bins of equal width. The axis of counts is logarithmic
// if the largest bin is 100 times the median one. The axis of lengths goes at least to reach, so
// that charts can be compared.
func histogram(unit string, pairs [][2]int64, marks []mark, reach int64) *chart {
	if len(pairs) == 0 {
		return nil
	}
	c := &chart{Unit: unit}
	longest := max(reach, pairs[len(pairs)-1][0])
	last := longest // length that occurs
	for _, m := range marks {
		longest = max(longest, int64(math.Ceil(m.at)))
		if m.name == "longest" {
			last = int64(m.at)
		}
	}
	width := niceStep(float64(longest+1) / maxBins)
	bins := int(longest/width) + 1
	counts := make([]int64, bins)
	for _, p := range pairs {
		counts[p[0]/width] += p[1]
	}
	x := func(length float64) float64 {
		return plotLeft + (plotRight-plotLeft)*length/float64(int64(bins)*width)
	}
	height := c.axis(counts)
	for i, n := range counts {
		from := int64(i) * width
		if n == 0 {
			continue
		}
		left, right := x(float64(from)), x(float64(from+width))
		gap := min(1, (right-left)/5)
		h := (plotBottom - plotTop) * height(n)
		c.Bars = append(c.Bars, bar{fixed(left), fixed(plotBottom - h), fixed(right - left - gap), fixed(h), from,
			min(from+width-1, last), n})
	}
	step := niceStep(float64(int64(bins)*width) / 7.5)
	for at := int64(0); at <= int64(bins)*width; at += step {
		c.XTicks = append(c.XTicks, tick{fixed(x(float64(at))), compact(at)})
	}
	c.drawMarks(marks, x)
	return c
}

// axis sets the ticks of counts and returns a function for the height of a count as a share of the
// plot.
func (c *chart) axis(counts []int64) func(int64) float64 {
	var some []int64
	for _, n := range counts {
		if n > 0 {
			some = append(some, n)
		}
	}
	slices.Sort(some)
	largest := some[len(some)-1]
	c.Log = largest >= 100*some[len(some)/2]
	y := func(share float64) string { return fixed(plotBottom - (plotBottom-plotTop)*share) }
	if !c.Log {
		step := niceStep(float64(largest) / 4)
		top := (largest + step - 1) / step * step
		for n := int64(0); n <= top; n += step {
			c.YTicks = append(c.YTicks, tick{y(float64(n) / float64(top)), compact(n)})
		}
		return func(n int64) float64 { return float64(n) / float64(top) }
	}
	decades := math.Ceil(math.Log10(float64(largest)))
	every := int(math.Ceil(decades / 4))
	for k := 0; k <= int(decades); k += every {
		c.YTicks = append(c.YTicks, tick{y((float64(k) + 0.3) / (decades + 0.3)), compact(int64(math.Pow10(k)))})
	}
	// The axis begins below 1, so that a count of 1 is visible.
	return func(n int64) float64 { return (math.Log10(float64(n)) + 0.3) / (decades + 0.3) }
}

// drawMarks draws each mark as a line with dashes of its own, which the key under the chart names from
// left to right. Labels inside a chart would lie on each other where lengths are close. Marks at the
// same length share a line.
func (c *chart) drawMarks(all []mark, x func(float64) float64) {
	var marks []mark
	for _, m := range all {
		m.at = math.Floor(m.at + 0.5)
		if i := slices.IndexFunc(marks, func(o mark) bool { return o.at == m.at }); i >= 0 {
			marks[i].name += ", " + m.name
			continue
		}
		marks = append(marks, m)
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	var words []string
	for i, m := range marks {
		text := fmt.Sprintf("%s %s", m.name, units.Count(int64(m.at)))
		c.Marks = append(c.Marks, drawnMark{X: fixed(x(m.at)), Text: text, Dashes: i})
		words = append(words, text)
	}
	c.Label = fmt.Sprintf("Histogram of tokens by %s: %s", strings.TrimSuffix(c.Unit, "s"), strings.Join(words, ", "))
}

// niceStep returns the least of 1, 2, 5, 10, 20, … that is at least x.
func niceStep(x float64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if float64(k*step) >= x {
				return k * step
			}
		}
	}
}

func fixed(x float64) string { return fmt.Sprintf("%.1f", x) }

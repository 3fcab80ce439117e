package page

import (
	"math"
	"strconv"
	"time"
)

// The tiers of a history: the newest samples unchanged, older ones as means of coarse samples.
const (
	finePoints   = 600
	coarsePoints = 600
	coarse       = 10
)

// history keeps the latest samples of a fixed set of figures: finePoints unchanged, and before them
// coarsePoints means of coarse samples each. It belongs to one goroutine.
type history struct {
	fine, older ring
	sum         []float64 // sum of the samples for the next coarse point
	counted     []int
	sumTime     float64
	pending     int
}

// ring is a fixed number of points, each a time in seconds and a value for every column.
type ring struct {
	columns int
	times   []float64
	values  []float32
	n       int // points written so far
}

func newRing(points, columns int) ring {
	return ring{columns: columns, times: make([]float64, points), values: make([]float32, points*columns)}
}

// add adds a point and returns the slice for its values.
func (r *ring) add(t float64) []float32 {
	i := r.n % len(r.times)
	r.n++
	r.times[i] = t
	return r.values[i*r.columns:][:r.columns]
}

// each calls f with the points, oldest first.
func (r *ring) each(f func(t float64, values []float32)) {
	for k := max(0, r.n-len(r.times)); k < r.n; k++ {
		i := k % len(r.times)
		f(r.times[i], r.values[i*r.columns:][:r.columns])
	}
}

// newHistory returns a history of the given number of figures.
func newHistory(columns int) *history {
	return &history{
		fine: newRing(finePoints, columns),
		// Coarse points are made at once, so some of them cover the same time as fine ones.
		older: newRing(coarsePoints+finePoints/coarse, columns),
		sum:   make([]float64, columns), counted: make([]int, columns),
	}
}

// HistoryBytes returns the memory of a history of the given number of figures.
func HistoryBytes(columns int) int64 {
	points := int64(finePoints + coarsePoints + finePoints/coarse)
	return points*(8+4*int64(columns)) + 16*int64(columns)
}

// Add appends a sample. NaN is an unknown figure.
func (h *history) Add(now time.Time, values []float32) {
	t := seconds(now)
	copy(h.fine.add(t), values)
	for i, v := range values {
		if v == v {
			h.sum[i] += float64(v)
			h.counted[i]++
		}
	}
	h.sumTime += t
	if h.pending++; h.pending < coarse {
		return
	}
	point := h.older.add(h.sumTime / coarse)
	for i := range point {
		point[i] = float32(math.NaN())
		if h.counted[i] > 0 {
			point[i] = float32(h.sum[i] / float64(h.counted[i]))
		}
	}
	clear(h.sum)
	clear(h.counted)
	h.sumTime, h.pending = 0, 0
}

// forget makes a figure unknown at all times.
func (h *history) forget(column int) {
	for _, r := range []*ring{&h.fine, &h.older} {
		for i := range r.times {
			r.values[i*r.columns+column] = float32(math.NaN())
		}
	}
	h.sum[column], h.counted[column] = 0, 0
}

// each calls f with all points, oldest first: the coarse ones, then the fine ones.
func (h *history) each(f func(t float64, values []float32)) {
	first := math.Inf(1)
	if h.fine.n > 0 {
		first = h.fine.times[max(0, h.fine.n-finePoints)%finePoints]
	}
	h.older.each(func(t float64, values []float32) {
		if t+coarse/2 <= first {
			f(t, values)
		}
	})
	h.fine.each(f)
}

// appendPoint appends a point as a JSON array: the time, then the values, null where unknown.
func appendPoint(dst []byte, t float64, values []float32) []byte {
	dst = strconv.AppendFloat(append(dst, '['), t, 'f', 1, 64)
	for _, v := range values {
		dst = append(dst, ',')
		if v != v || math.IsInf(float64(v), 0) {
			dst = append(dst, "null"...)
			continue
		}
		dst = strconv.AppendFloat(dst, float64(v), 'g', 5, 32)
	}
	return append(dst, ']')
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

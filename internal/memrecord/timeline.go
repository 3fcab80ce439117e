package memrecord

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/markup"
	"github.com/dsload/dsload/internal/units"
)

//go:embed timeline.html
var pageSource string

//go:embed timeline.css
var pageStyle string

// The size of the chart and the position of its plot.
const (
	chartWidth, chartHeight = 960, 380
	plotLeft, plotRight     = 72, 912
	plotTop, plotBottom     = 48, 340
	// maxPoints is the maximum number of points of a line. Of a longer line, the highest point of
	// each run of neighbours is drawn.
	maxPoints = 800
)

type timelineChart struct {
	Label  string
	Lines  []chartLine
	YTicks []chartTick
	XTicks []chartTick
	Marks  []chartMark // findings
	Cap    *chartTick  // the device's memory
	Fail   *chartFail
	FailAt string
}

type chartLine struct{ Class, Name, Path, Last string }

type chartTick struct{ At, Text string }

type chartMark struct {
	X, Y   string
	Number int
}

type chartFail struct{ X, Anchor, TextX, Text string }

type tableRow struct {
	Step, Phase                          string
	Allocated, Peak, Reserved, Free, RSS string
	Failed                               bool
}

// Timeline analyses a record as Read does and writes a page that shows its memory over time, with
// the failing step and each finding marked. The page loads nothing and runs no scripts. name is the
// record's name.
func Timeline(w io.Writer, r io.Reader, name string) (*Analysis, error) {
	rec, err := read(r)
	if err != nil {
		return nil, err
	}
	a := rec.analyse()
	title := headline(rec, a)
	about := markup.Format(`<bdi class="name">%s</bdi> · %d steps`, name, a.Steps)
	if rec.start.Device != "" {
		about += markup.Format(` on <bdi class="name">%s</bdi>`, rec.start.Device)
	}
	if a.Runs > 0 {
		about += markup.Format(" · the last of %d runs", a.Runs)
	}
	slots := map[string]markup.HTML{
		"headline": markup.Format("%s", title), "record": about, "chart": rec.chart(a).html(),
		"findings": findings(a.Verdicts), "open": "",
		"table": markup.Each(rec.table(), func(_ int, r tableRow) markup.HTML { return r.html() }),
	}
	if a.OutOfMemory {
		slots["open"] = " open"
	}
	_, err = w.Write(markup.Page(title, pageStyle, markup.Fill(pageSource, slots)))
	return a, err
}

// headline returns the result in one line.
func headline(r *record, a *Analysis) string {
	if r.oom == nil {
		if a.Peak == nil {
			return fmt.Sprintf("%s steps, highest memory in phase %s", units.Count(int64(a.Steps)), a.Where)
		}
		return fmt.Sprintf("peak %s in phase %s, over %s steps", units.Size(*a.Peak), a.Where, units.Count(int64(a.Steps)))
	}
	text := "ran out of memory"
	if r.oom.Step != nil {
		text += fmt.Sprintf(" at step %s", units.Count(int64(*r.oom.Step)))
	}
	if r.oom.Phase != "" {
		text += ", " + r.oom.Phase
	}
	if r.oom.Requested != nil {
		text += fmt.Sprintf(", asking for %s", units.Size(*r.oom.Requested))
	}
	return text
}

// drawn lists the lines of a chart in order.
var drawn = []struct {
	class, name string
	get         func(*line) *float64
}{
	{"reserved", "reserved by the allocator", func(l *line) *float64 { return l.Reserved }},
	{"peak", "peak of the step", func(l *line) *float64 { return l.Peak }},
	{"allocated", "allocated", func(l *line) *float64 { return l.Allocated }},
	{"rss", "the process in main memory", func(l *line) *float64 { return l.RSS }},
}

// chart draws the figures of all snapshots, oldest on the left. It returns nil if there are none.
func (r *record) chart(a *Analysis) *timelineChart {
	points := slices.Clone(r.snapshots)
	if r.oom != nil {
		points = append(points, r.oom)
	}
	if len(points) == 0 {
		return nil
	}
	c := &timelineChart{}
	top, total := 0.0, value(r.start.DeviceTotal)
	for _, l := range points {
		for _, d := range drawn {
			top = max(top, value(d.get(l)))
		}
	}
	if top <= 0 {
		return nil
	}
	if total < maxDeviceRatio*top {
		top = max(top, total)
	}
	top *= 1.05
	x := func(i int) float64 { return plotLeft + (plotRight-plotLeft)*float64(i)/float64(max(1, len(points)-1)) }
	y := func(bytes float64) float64 { return plotBottom - (plotBottom-plotTop)*bytes/top }
	var words []string
	for _, d := range drawn {
		l := chartLine{Class: d.class, Name: d.name}
		if l.Path, l.Last = path(points, d.get, x, y); l.Path != "" {
			c.Lines = append(c.Lines, l)
			words = append(words, fmt.Sprintf("%s %s at the end", d.name, l.Last))
		}
	}
	step := sizeStep(top / 5)
	for at := 0.0; at <= top; at += step {
		c.YTicks = append(c.YTicks, chartTick{fixed(y(at)), units.Size(at).String()})
	}
	if total > 0 {
		if total <= top {
			c.Cap = &chartTick{fixed(y(total)), "the device has " + units.Size(total).String()}
		}
		words = append(words, "the device has "+units.Size(total).String())
	}
	c.XTicks = stepTicks(points, x)
	if r.oom != nil {
		at := x(len(points) - 1)
		f := &chartFail{X: fixed(at), Anchor: "end", TextX: fixed(at - 6), Text: headline(r, a)}
		c.Fail, c.FailAt = f, fixed(plotTop-26)
		words = append(words, f.Text)
	}
	c.marks(points, a, x, y)
	c.Label = "Memory over time: " + strings.Join(words, ", ")
	return c
}

// maxDeviceRatio is how many times the largest figure the device's memory may be to be drawn: beyond that
// the figures would be a flat line.
const maxDeviceRatio = 4

// maxTicks is the maximum number of step labels that fit below a chart.
const maxTicks = 7

// stepTicks returns labels for steps that are multiples of 1, 2, 5, 10, 20, …, at the first point of
// each.
func stepTicks(points []*line, x func(int) float64) (ticks []chartTick) {
	var low, high int64
	for i, l := range points {
		if l.Step != nil {
			if low = min(low, *l.Step); i == 0 {
				low = *l.Step
			}
			high = max(high, *l.Step)
		}
	}
	every := int64(1)
	for k := 0; (high-low)/every >= maxTicks; k++ {
		every = every / []int64{1, 2, 1}[k%3] * []int64{2, 5, 2}[k%3] // 2, 5, 10, 20, …
	}
	at := math.Inf(-1)
	last := int64(-1)
	for i, l := range points {
		if l.Step == nil || *l.Step == last || *l.Step%every != 0 || x(i)-at < (plotRight-plotLeft)/(maxTicks+1) {
			continue
		}
		last, at = *l.Step, x(i)
		ticks = append(ticks, chartTick{fixed(at), "step " + units.Count(int64(last))})
	}
	return ticks
}

// marks puts the number of each finding at the highest moment of its phase.
func (c *timelineChart) marks(points []*line, a *Analysis, x func(int) float64, y func(float64) float64) {
	height := func(l *line) float64 { return max(value(l.Peak), value(l.Allocated), 0) }
	taken := map[int]int{}
	for n, v := range a.Verdicts {
		best := -1
		for i, l := range points {
			if l.Phase == v.Phase && (best < 0 || height(l) >= height(points[best])) {
				best = i
			}
		}
		if best < 0 {
			best = len(points) - 1
		}
		at := height(points[best])
		if at == 0 {
			at = value(points[best].RSS)
		}
		shift := 26 * taken[best] // findings at the same moment are drawn side by side
		taken[best]++
		left := min(x(best), plotRight-12) - float64(shift)
		c.Marks = append(c.Marks, chartMark{fixed(left), fixed(max(y(at)-2, plotTop)), n + 1})
	}
}

// path returns the line through a figure of the points, and its last value. Of neighbours that
// share a position the highest is drawn.
func path(points []*line, get func(*line) *float64, x func(int) float64, y func(float64) float64) (d, last string) {
	run := (len(points) + maxPoints - 1) / maxPoints
	var b strings.Builder
	for i := 0; i < len(points); i += run {
		best := math.NaN()
		at := i
		for k := i; k < min(i+run, len(points)); k++ {
			if v := get(points[k]); v != nil {
				if !(*v <= best) {
					best, at = *v, k
				}
				last = units.Size(*v).String()
			}
		}
		if best != best {
			continue
		}
		letter := 'L'
		if b.Len() == 0 {
			letter = 'M'
		}
		fmt.Fprintf(&b, "%c%s %s", letter, fixed(x(at)), fixed(y(best)))
	}
	return b.String(), last
}

// maxRows is the maximum number of rows in the table.
const maxRows = 40

// table returns the last snapshots, the failing one last.
func (r *record) table() (rows []tableRow) {
	points := r.snapshots[max(0, len(r.snapshots)-maxRows):]
	if r.oom != nil {
		points = append(slices.Clone(points), r.oom)
	}
	text := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return units.Size(*v).String()
	}
	for _, l := range points {
		step := "–"
		if l.Step != nil {
			step = units.Count(int64(*l.Step))
		}
		rows = append(rows, tableRow{step, l.Phase, text(l.Allocated), text(l.Peak), text(l.Reserved), text(l.Free),
			text(l.RSS), l.Type == "oom"})
	}
	return rows
}

func fixed(x float64) string { return fmt.Sprintf("%.1f", x) }

// sizeStep returns the least power of two that is at least x.
func sizeStep(x float64) float64 { return math.Exp2(math.Ceil(math.Log2(max(x, 1)))) }

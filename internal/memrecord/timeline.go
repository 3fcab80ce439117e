package memrecord

import (
	"cmp"
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

// The position of the plot in the chart, of 960 by 380.
const (
	plotLeft, plotRight = 72, 912
	plotTop, plotBottom = 48, 340
	// maxPoints is the maximum number of points of a line. Of a longer line, the highest point of
	// each run of neighbours is drawn.
	maxPoints = 800
)

// Timeline analyses a record as Read does and writes a page that shows its memory over time, with
// the failing step and each finding marked. The page loads nothing and runs no scripts. name is the
// record's name.
func Timeline(w io.Writer, r io.Reader, name string) (*Analysis, error) {
	rec, err := read(r, maxSnapshots)
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
	var open, healthy markup.HTML
	if a.OutOfMemory {
		open = " open"
	}
	if len(a.Verdicts) == 0 {
		healthy = "\n<p>Nothing out of the ordinary.</p>"
	}
	_, err = w.Write(markup.Page(title, pageStyle, markup.Fill(pageSource, map[string]markup.HTML{
		"headline": markup.Format("%s", title), "record": about, "healthy": healthy, "chart": rec.chart(a),
		"findings": findings(a.Verdicts), "open": open, "table": rec.table(),
	})))
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

// chart draws the figures of all snapshots, oldest on the left.
func (r *record) chart(a *Analysis) markup.HTML {
	points := slices.Clone(r.snapshots)
	if r.oom != nil {
		points = append(points, r.oom)
	}
	top, total := 0.0, value(r.start.DeviceTotal)
	for _, l := range points {
		for _, d := range drawn {
			top = max(top, value(d.get(l)))
		}
	}
	if top <= 0 {
		return "<p>The record has no snapshot with a figure.</p>"
	}
	if total < maxDeviceRatio*top {
		top = max(top, total)
	}
	top *= 1.05
	x := func(i int) float64 { return plotLeft + (plotRight-plotLeft)*float64(i)/float64(max(1, len(points)-1)) }
	y := func(bytes float64) float64 { return plotBottom - (plotBottom-plotTop)*bytes/top }
	var drawing, lines, keys markup.HTML
	var words []string
	for _, d := range drawn {
		path, last := path(points, d.get, x, y)
		if path == "" {
			continue
		}
		lines += markup.Format(`<path class="curve %s" d="%s"/>`, d.class, path)
		keys += markup.Format(`<li><svg viewBox="0 0 22 10" aria-hidden="true"><path class="curve %s" d="M0 5H22"/></svg>`+
			`%s, %s at the end</li>`, d.class, d.name, last)
		words = append(words, fmt.Sprintf("%s %s at the end", d.name, last))
	}
	for at, step := 0.0, math.Exp2(math.Ceil(math.Log2(max(top/5, 1)))); at <= top; at += step {
		drawing += markup.Format(`<line class="grid" x1="72" x2="912" y1="%[1]s" y2="%[1]s"/>`+
			`<text class="y" x="66" y="%[1]s" dy="4" text-anchor="end">%[2]s</text>`, fixed(y(at)), units.Size(at))
	}
	strip, phases := phaseStrip(points, x)
	drawing += stepTicks(points, x) + strip
	if total > 0 {
		words = append(words, "the device has "+units.Size(total).String())
	}
	if total > 0 && total <= top {
		drawing += markup.Format(`<line class="cap" x1="72" x2="912" y1="%[1]s" y2="%[1]s"/>`+
			`<text class="capname" x="76" y="%[1]s" dy="-6">the device has %[2]s</text>`, fixed(y(total)), units.Size(total))
	}
	if drawing += lines; r.oom != nil {
		at, text := x(len(points)-1), headline(r, a)
		drawing += markup.Format(`<line class="fail" x1="%[1]s" x2="%[1]s" y1="%[2]s" y2="340"/>`+
			`<text class="failname" x="%[3]s" y="%[2]s" dy="10" text-anchor="end">%[4]s</text>`, fixed(at),
			fixed(plotTop-26), fixed(at-6), text)
		words = append(words, text)
	}
	return markup.Format(`<div class="scroll" tabindex="0" role="group" aria-label="Chart of memory over time">
<svg viewBox="0 0 960 380" role="img" aria-label="%s">
%s%s
</svg>
</div>
<ul class="keys">%s</ul>%s`, "Memory over time: "+strings.Join(words, ", "), drawing, marks(points, a, x, y), keys, phases)
}

// maxDeviceRatio is how many times the largest figure the device's memory may be to be drawn: beyond that
// the figures would be a flat line.
const maxDeviceRatio = 4

// maxTicks is the maximum number of step labels that fit below a chart.
const maxTicks = 7

// stepTicks returns labels for steps that are multiples of 1, 2, 5, 10, 20, …, at the first point of
// each.
func stepTicks(points []*line, x func(int) float64) (ticks markup.HTML) {
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
		ticks += markup.Format(`<text class="x" x="%s" y="360" text-anchor="middle">step %s</text>`, fixed(at), units.Count(last))
	}
	return ticks
}

// phaseStrip draws which phase each moment is of, below the chart, and returns the key with the highest memory of each.
func phaseStrip(points []*line, x func(int) float64) (strip, key markup.HTML) {
	var names []string
	highest := map[string]float64{}
	for i, l := range points {
		n := slices.Index(names, l.Phase)
		if n < 0 {
			n, names = len(names), append(names, l.Phase)
		}
		highest[l.Phase] = max(highest[l.Phase], value(l.Peak), value(l.Allocated))
		if len(points) <= maxPoints {
			strip += markup.Format(`<path class="phase p%d" d="M%s 342H%s"/>`, n%5, fixed(x(max(0, i-1))), fixed(x(i)))
		}
	}
	for n, name := range names {
		key += markup.Format(`<li><svg viewBox="0 0 22 10" aria-hidden="true"><path class="phase p%d" d="M0 5H22"/></svg>`+
			`%s, up to %s</li>`, n%5, cmp.Or(name, "no phase"), units.Size(highest[name]))
	}
	return strip, `<ul class="keys" aria-label="Phases">` + key + "</ul>"
}

// marks puts the number of each finding at the highest moment of its phase.
func marks(points []*line, a *Analysis, x func(int) float64, y func(float64) float64) (drawing markup.HTML) {
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
		drawing += markup.Format(`<circle class="dot" cx="%[1]s" cy="%[2]s" r="11"/>`+
			`<text class="dotname" x="%[1]s" y="%[2]s" dy="4" text-anchor="middle">%[3]d</text>`, fixed(left),
			fixed(max(y(at)-2, plotTop)), n+1)
	}
	return drawing
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

// table returns rows for the last snapshots, the failing one last.
func (r *record) table() (rows markup.HTML) {
	points := r.snapshots[max(0, len(r.snapshots)-maxRows):]
	if r.oom != nil {
		points = append(slices.Clone(points), r.oom)
	}
	for _, l := range points {
		step := "–"
		if l.Step != nil {
			step = units.Count(*l.Step)
		}
		var class, end markup.HTML
		if l.Type == "oom" {
			class, end = ` class="failed"`, ": out of memory"
		}
		rows += markup.Format("\n"+`<tr%s><th scope="row">%s</th><td>%s%s</td>`, class, step, l.Phase, end)
		for _, v := range []*float64{l.Allocated, l.Peak, l.Reserved, l.Free, l.RSS} {
			cell := "–"
			if v != nil {
				cell = units.Size(*v).String()
			}
			rows += markup.Format("<td>%s</td>", cell)
		}
		rows += "</tr>"
	}
	return rows
}

func fixed(x float64) string { return fmt.Sprintf("%.1f", x) }

// findings lists the causes that were found.
func findings(all []Verdict) markup.HTML {
	if len(all) == 0 {
		return ""
	}
	item := func(_ int, text string) markup.HTML { return markup.Format("<li><bdi>%s</bdi></li>", text) }
	return "<section>\n<h2>Why, and what to change</h2>\n<ol>\n" + markup.Each(all, func(_ int, v Verdict) markup.HTML {
		var actions markup.HTML
		if len(v.Actions) > 0 {
			actions = "<ul>" + markup.Each(v.Actions, item) + "</ul>"
		}
		return markup.Format(`<li><bdi>%s</bdi> <span class="soft">(%s, %s)</span>%s</li>`+"\n", v.Message, v.Kind, v.Phase,
			actions)
	}) + "</ol>\n</section>\n"
}

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/dsload/dsload/internal/ingest/report"
)

// A bar is a progress line that is redrawn in place. The progressbar library only renders it, into
// a string: it measures the window once, and wraps in a narrow one. So the bar chooses what fits.
// It asks for the width before each draw, stays shorter than that, and redraws as soon as the
// window changes. It has no colours.
type bar struct {
	w     io.Writer
	width func() int

	mu      sync.Mutex
	last    report.Progress
	drawn   bool // something is on the line
	ended   bool
	resized chan os.Signal
	done    chan struct{}
}

const (
	defaultColumns = 80 // where the terminal does not report its width
	longestBar     = 30
	shortestBar    = 5
	barSteps       = 1000
)

func terminalWidth(w io.Writer) func() int {
	return func() int {
		if f, ok := w.(*os.File); ok {
			if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
				return columns
			}
		}
		return defaultColumns
	}
}

func newBar(w io.Writer, width func() int) *bar {
	b := &bar{w: w, width: width, resized: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(b.resized, resizeSignal)
	go b.follow()
	return b
}

// follow redraws when the window changes, until finish.
func (b *bar) follow() {
	for {
		select {
		case <-b.resized:
			b.mu.Lock()
			if b.drawn && !b.ended {
				b.draw()
			}
			b.mu.Unlock()
		case <-b.done:
			return
		}
	}
}

func (b *bar) update(p report.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.last = p
	b.draw()
}

// draw writes the line over the previous one and clears the rest of the screen below: a terminal
// that rewraps long lines has moved part of the previous line there.
func (b *bar) draw() {
	fmt.Fprintf(b.w, "\r%s\x1b[J", barLine(b.last, b.width()-1))
	b.drawn = true
}

// finish clears the line.
func (b *bar) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.ended = true
	signal.Stop(b.resized)
	close(b.done)
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[J")
	}
}

// statusFigure is one figure of a progress line. If there is no room for all, the figure with the
// lowest rank is left out first.
type statusFigure struct {
	text string
	rank int
}

// statusFigures returns the figures of a progress line in the order of display.
func statusFigures(p report.Progress) []statusFigure {
	r := ratesOf(p)
	figures := []statusFigure{
		{formatCount(p.Examples) + " examples", 5},
		{fmt.Sprintf("%.1f MB/s", r.mbPerSecond), 2},
		{formatCount(int64(r.tokensPerSecond)) + " tokens/s", 3},
		{formatSize(p.Memory) + " of " + formatSize(p.CapBytes), 1},
	}
	if r.left > 0 {
		figures = append(figures, statusFigure{r.left.Round(time.Second).String() + " left", 4})
	}
	return figures
}

// barLine returns a progress line of at most width columns: percentage and bar, if the end is
// known, and the figures that fit.
func barLine(p report.Progress, width int) string {
	figures, known := statusFigures(p), p.Fraction >= 0
	line := func(bar int) string {
		if known {
			return renderBar(p.Fraction, bar, joinFigures(figures))
		}
		return joinFigures(figures)
	}
	for len(figures) > 0 && columns(line(shortestBar)) > width {
		least := slices.MinFunc(figures, func(a, b statusFigure) int { return a.rank - b.rank })
		figures = slices.DeleteFunc(figures, func(f statusFigure) bool { return f == least })
	}
	bar := min(width-columns(line(1))+1, longestBar)
	if bar < shortestBar {
		bar = 0
	}
	text := line(bar)
	if columns(text) > max(0, width) {
		return "" // not even the percentage fits
	}
	return text
}

// columns returns the width of a progress line: each of its characters takes one column.
func columns(line string) int { return utf8.RuneCountInString(line) }

func joinFigures(figures []statusFigure) string {
	var texts []string
	for _, figure := range figures {
		texts = append(texts, figure.text)
	}
	return strings.Join(texts, "  ")
}

// renderBar returns the percentage, a bar width columns wide, and text, laid out on a line by the
// library.
func renderBar(fraction float64, width int, text string) string {
	b := progressbar.NewOptions(barSteps,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(width),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetDescription(text),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}),
	)
	// Neither call can fail: the writer takes everything, and the step is below the last.
	_ = b.Set(int(barSteps * min(fraction, 0.999)))
	_ = b.RenderBlank() // Set renders nothing below one percent
	return strings.TrimRight(strings.TrimPrefix(b.String(), "\r "), " ")
}

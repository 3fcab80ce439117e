package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/spelling"
)

// A progressView shows a build's progress: a bar on a terminal, otherwise an occasional plain or
// JSON line.
type progressView struct {
	update func(report.Progress)
	finish func()
}

// lineInterval is the time between progress lines without a terminal.
const lineInterval = 5 * time.Second

// progressModes lists the values of --progress.
var progressModes = []string{"auto", "bar", "json", "none"}

func newProgress(mode string, stderr io.Writer) (*progressView, error) {
	terminal := isTerminal(stderr) && os.Getenv("TERM") != "dumb"
	switch {
	case mode == "none":
		return &progressView{update: func(report.Progress) {}, finish: func() {}}, nil
	case mode == "json":
		return jsonProgress(stderr), nil
	case mode == "bar", mode == "auto" && terminal:
		b := newBar(stderr, terminalWidth(stderr))
		return &progressView{b.update, b.finish}, nil
	case mode == "auto":
		throttle := every(lineInterval)
		return &progressView{func(p report.Progress) {
			if !p.Done && throttle() {
				fmt.Fprintln(stderr, joinFigures(statusFigures(p)))
			}
		}, func() {}}, nil
	}
	return nil, usagef("--progress %s: %s", mode, spelling.OneOf(mode, progressModes))
}

func jsonProgress(w io.Writer) *progressView {
	enc := json.NewEncoder(w)
	throttle := every(time.Second)
	return &progressView{update: func(p report.Progress) {
		if !p.Done && !throttle() {
			return
		}
		r := ratesOf(p)
		line := map[string]any{
			"documents": p.Documents, "examples": p.Examples, "tokens": p.Tokens, "text_bytes": p.TextBytes,
			"elapsed_s": round(p.Elapsed.Seconds()), "mb_per_s": round(r.mbPerSecond),
			"tokens_per_s": int64(r.tokensPerSecond), "rss_bytes": p.Memory,
			"memory_cap_bytes": p.CapBytes, "done": p.Done,
		}
		if p.Fraction >= 0 {
			line["fraction"] = round(p.Fraction)
		}
		if r.left > 0 {
			line["eta_s"] = round(r.left.Seconds())
		}
		_ = enc.Encode(line)
	}, finish: func() {}}
}

type rates struct {
	mbPerSecond, tokensPerSecond float64
	left                         time.Duration // 0 if the end is unknown
}

// ratesOf returns averages over this run. They exclude work done before a resume. The first half
// second gives no estimate of the time left.
func ratesOf(p report.Progress) rates {
	s := p.Elapsed.Seconds()
	if s <= 0 {
		return rates{}
	}
	r := rates{
		mbPerSecond:     float64(p.TextBytes-p.Resumed.TextBytes) / 1e6 / s,
		tokensPerSecond: float64(p.Tokens-p.Resumed.Tokens) / s,
	}
	if p.Fraction > 0 && p.Fraction < 1 && s > 0.5 && p.Resumed.Documents == 0 {
		r.left = time.Duration(float64(p.Elapsed) * (1 - p.Fraction) / p.Fraction)
	}
	return r
}

// every returns a function that returns true at most once per interval, the first time after one
// interval.
func every(interval time.Duration) func() bool {
	next := time.Now().Add(interval)
	return func() bool {
		now := time.Now()
		if now.Before(next) {
			return false
		}
		next = now.Add(interval)
		return true
	}
}

func round(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }

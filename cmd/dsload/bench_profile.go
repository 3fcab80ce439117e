package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
	"text/tabwriter"
)

// A stageCost is the CPU time of a stage of a build.
type stageCost struct {
	Stage          string  `json:"stage"`
	CPUSeconds     float64 `json:"cpu_s"`
	MBPerCPUSecond float64 `json:"mb_per_cpu_s"` // of text, if the build had only this stage
}

// stages are the stages of a build in the order in which they are printed.
var stages = []string{"start", "read", "format", "tokenize", "cut", "write", "hash", "rest"}

// stageOf maps functions to stages. A sample counts for the innermost function on its stack that is listed here.
// A stack without one, such as that of the garbage collector, counts for the rest.
var stageOf = []struct{ function, stage string }{
	{"github.com/zeebo/", "hash"},
	{"hash/crc32.", "hash"},
	{"/tokenize.(*Encoder).", "tokenize"},
	{"/shard.", "write"},
	{"/ingest/example.(*Cutter).", "cut"},
	{"/ingest.(*flusher).", "cut"},
	{"/ingest/rows.", "cut"},
	{"/ingest/work.", "format"},
	{"/ingest/source.", "read"},
	{"/ingest/read.", "read"},
	{"/ingest.(*build).prepare", "start"},
	{"/ingest.(*build).stream", "rest"},
	{"main.run", "start"},
	{"runtime.doInit", "start"},
}

// profileTo writes a CPU profile of this process to a file until stop is called. An empty path means none.
func profileTo(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// addSamples adds to counts how many samples of a profile fall on each stage.
func addSamples(counts map[string]int64, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	return readProfile(data, func(n int64, stack []string) { counts[stageOfStack(stack)] += n })
}

// stageOfStack returns the stage of a stack, whose innermost function is the first.
func stageOfStack(stack []string) string {
	for _, function := range stack {
		for _, s := range stageOf {
			if strings.Contains(function, s.function) {
				return s.stage
			}
		}
	}
	return "rest"
}

// addStages divides the CPU time of a build among its stages as samples fell on them.
func (f *buildFigures) addStages(counts map[string]int64) {
	for _, n := range counts {
		f.Samples += n
	}
	for _, stage := range stages {
		c := stageCost{Stage: stage}
		if counts[stage] > 0 && f.CPUSeconds > 0 {
			c.CPUSeconds = f.CPUSeconds * float64(counts[stage]) / float64(f.Samples)
			c.MBPerCPUSecond = float64(f.TextBytes) / 1e6 / c.CPUSeconds
		}
		f.Stages = append(f.Stages, c)
	}
}

// printStages prints where a build spent its CPU time.
func printStages(w io.Writer, f *buildFigures) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nstage\tCPU s\tshare\tMB per CPU-second\t\n")
	for _, s := range f.Stages {
		rate := "-"
		if s.CPUSeconds > 0 {
			rate = fmt.Sprintf("%.0f", s.MBPerCPUSecond)
		}
		fmt.Fprintf(t, "%s\t%.3f\t%.0f%%\t%s\t\n", s.Stage, s.CPUSeconds, 100*s.CPUSeconds/max(f.CPUSeconds, 1e-9),
			rate)
	}
	fmt.Fprintf(t, "all\t%.3f\t100%%\t%.0f\t\n", f.CPUSeconds, f.MBPerCPUSecond)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "(shares of %s samples in all rounds)\n", formatCount(f.Samples))
	return err
}

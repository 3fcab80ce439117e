package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dsload/dsload/internal/ingest/report"
)

// BuildFigures are the figures of one build, measured as a whole process.
type BuildFigures struct {
	MBPerCPUSecond float64 `json:"mb_per_cpu_s"`
	MBPerSecond    float64 `json:"mb_per_s"`
	TokensPerSec   float64 `json:"tokens_per_s"`
	PeakRSSBytes   int64   `json:"peak_rss_bytes"`
	CPUSeconds     float64 `json:"cpu_s"`
	WallSeconds    float64 `json:"wall_s"`
	TextBytes      int64   `json:"text_bytes"`
	Tokens         int64   `json:"tokens"`
	Examples       int64   `json:"examples"`
	Rounds         int     `json:"rounds"`
	Workers        int     `json:"workers"`
	Memory         int64   `json:"memory_cap_bytes"`
	Tokenizer      string  `json:"tokenizer"`
	// With --profile: the CPU time by stages, and the number of samples.
	Stages  []StageCost `json:"stages,omitempty"`
	Samples int64       `json:"samples,omitempty"`
}

// BuildOptions are those of the builds to measure, all of them needed but Workers.
type BuildOptions struct {
	Tokenizer, Format string // see build's flags
	Memory, MaxBytes  int64
	Workers           int // 0 for build's default
	Rounds            int
	Profile           bool // whether to find the CPU time of each stage
	Stdin             io.Reader
	Stderr            io.Writer
}

// Build measures builds of the sources, and returns the figures of the round with the most text per CPU-second. A build
// that failed has said why on Stderr: the error wraps an *exec.ExitError.
func Build(ctx context.Context, sources []string, o BuildOptions) (*BuildFigures, error) {
	args := []string{"--tokenizer", o.Tokenizer, "--format", o.Format, "--memory", strconv.FormatInt(o.Memory, 10),
		"--max-bytes", strconv.FormatInt(o.MaxBytes, 10)}
	if o.Workers > 0 {
		args = append(args, "--workers", strconv.Itoa(o.Workers))
	}
	var samples map[string]int64
	if o.Profile {
		samples = map[string]int64{}
	}
	var best *BuildFigures
	for range o.Rounds {
		figures, err := measureBuild(ctx, &o, append(args, sources...), samples)
		if err != nil {
			return nil, err
		}
		if best == nil || figures.MBPerCPUSecond > best.MBPerCPUSecond {
			best = figures
		}
	}
	best.Rounds, best.Workers, best.Memory, best.Tokenizer = o.Rounds, o.Workers, o.Memory, o.Tokenizer
	if o.Profile {
		best.addStages(samples)
	}
	return best, nil
}

// measureBuild runs a build in a child process and reads its cost from the kernel. Samples of where it spends its
// time are added to samples, by stages; nil asks for none.
func measureBuild(ctx context.Context, o *BuildOptions, args []string, samples map[string]int64) (*BuildFigures, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program to measure it: %w", err)
	}
	dir, err := os.MkdirTemp("", "dsload-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	profile := filepath.Join(dir, "profile")
	if samples != nil {
		args = append([]string{"--cpu-profile", profile}, args...)
	}
	child := exec.CommandContext(ctx, self, append([]string{"build", "--out", filepath.Join(dir, "data"),
		"--max-examples", "0", "--progress", "none", "--json"}, args...)...)
	child.Stdin, child.Stderr = o.Stdin, o.Stderr
	start := time.Now()
	out, err := child.Output()
	wall := time.Since(start).Seconds()
	if err != nil {
		return nil, fmt.Errorf("measured build: %w", err)
	}
	var s report.Summary
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, fmt.Errorf("read the measured build's summary: %w", err)
	}
	f := &BuildFigures{
		CPUSeconds: (child.ProcessState.UserTime() + child.ProcessState.SystemTime()).Seconds(), WallSeconds: wall,
		TextBytes: s.TextBytes, PeakRSSBytes: peakOfEnded(child.ProcessState),
	}
	f.Examples, f.Tokens = s.Sums()
	f.MBPerCPUSecond = float64(f.TextBytes) / 1e6 / f.CPUSeconds
	f.MBPerSecond = float64(f.TextBytes) / 1e6 / wall
	f.TokensPerSec = float64(f.Tokens) / wall
	if samples != nil {
		if err := addSamples(samples, profile); err != nil {
			return nil, fmt.Errorf("read the measured build's profile: %w", err)
		}
	}
	return f, nil
}

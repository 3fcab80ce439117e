package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// With --profile: the CPU time by stages, that of each goroutine that is alone, the speed at which the slowest of them
	// keeps any number of cores, and the number of samples.
	Stages           []StageCost `json:"stages,omitempty"`
	Alone            []AloneCost `json:"alone,omitempty"`
	BoundMBPerSecond float64     `json:"bound_mb_per_s,omitempty"`
	Samples          int64       `json:"samples,omitempty"`
}

// BuildOptions are those of the builds to measure, all of them needed but Options.
type BuildOptions struct {
	Options   []string // arguments of build
	Tokenizer string   // these three are in Options, or build's defaults
	Memory    int64
	Workers   int
	Rounds    int
	Profile   bool // whether to find the CPU time of each stage
	Stdin     io.Reader
	Stderr    io.Writer
}

// Build measures builds of the sources, and returns the figures of the round with the most text per CPU-second. A build
// that failed has said why on Stderr: the error wraps an *exec.ExitError.
func Build(ctx context.Context, sources []string, o BuildOptions) (*BuildFigures, error) {
	args := slices.Concat(o.Options, []string{"--"}, sources)
	var found *samples
	if o.Profile {
		found = &samples{map[string]int64{}, map[string]int64{"reader": 0, "flusher": 0}}
	}
	var best *BuildFigures
	for range o.Rounds {
		figures, err := measureBuild(ctx, &o, args, found)
		if err != nil {
			return nil, err
		}
		if best == nil || figures.MBPerCPUSecond > best.MBPerCPUSecond {
			best = figures
		}
	}
	best.Rounds, best.Workers, best.Memory, best.Tokenizer = o.Rounds, o.Workers, o.Memory, o.Tokenizer
	if o.Profile {
		best.addStages(found)
	}
	return best, nil
}

// measureBuild runs a build in a child process and reads its cost from the kernel. Samples of where it spends its
// time are added to found; nil asks for none.
func measureBuild(ctx context.Context, o *BuildOptions, args []string, found *samples) (*BuildFigures, error) {
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
	if found != nil {
		args = append([]string{"--cpu-profile", profile}, args...)
	}
	child := exec.CommandContext(ctx, self, append([]string{"build", "--out", filepath.Join(dir, "data"),
		"--max-examples", "0", "--progress", "none", "--json"}, args...)...)
	child.Stdin, child.Stderr = o.Stdin, o.Stderr
	start := time.Now()
	out, err := child.Output()
	wall := time.Since(start).Seconds()
	if ctx.Err() != nil {
		return nil, ctx.Err() // its end killed the child
	}
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
	if found != nil {
		if err := found.add(profile); err != nil {
			return nil, fmt.Errorf("read the measured build's profile: %w", err)
		}
	}
	return f, nil
}

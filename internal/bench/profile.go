package bench

import (
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
)

// A StageCost is the CPU time of a stage of a build.
type StageCost struct {
	Stage          string  `json:"stage"`
	CPUSeconds     float64 `json:"cpu_s"`
	MBPerCPUSecond float64 `json:"mb_per_cpu_s"` // text, if the build had only this stage
}

// An AloneCost is the CPU time of a goroutine that is alone at what it does, however many cores there are.
type AloneCost struct {
	Goroutine    string  `json:"goroutine"`
	CPUSeconds   float64 `json:"cpu_s"`
	SecondsPerGB float64 `json:"cpu_s_per_gb"` // CPU seconds a GB of text
}

// samples counts the samples of profiles.
type samples struct{ stages, alone map[string]int64 }

// stages are the stages of a build in the order in which they are printed.
var stages = []string{"start", "read", "format", "tokenize", "cut", "write", "hash", "rest"}

// stageOf maps functions to stages. A sample counts for the innermost function on its stack that is listed here.
// A stack without one, such as that of the garbage collector, counts for the rest.
var stageOf = []struct{ function, stage string }{
	{"github.com/zeebo/", "hash"},
	{"hash/crc32.", "hash"},
	{"/tokenize.(*Encoder).", "tokenize"},
	{"/internal/dataset.", "write"},
	{"/internal/shardfile.", "write"},
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

// Profile writes a CPU profile of this process to a file until stop is called. An empty path means none.
func Profile(path string) (stop func() error, err error) {
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

// add counts the samples of a profile.
func (s *samples) add(path string) error {
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
	return readProfile(data, func(n int64, stack []string, goroutine string) {
		s.stages[stageOfStack(stack)] += n
		if goroutine != "" {
			s.alone[aloneOf(stack, goroutine)] += n
		}
	})
}

// aloneOf returns which goroutine a sample counts for: where the flusher writes batches itself, since no core is left, the
// one that would on more cores.
func aloneOf(stack []string, goroutine string) string {
	for _, function := range stack {
		switch {
		case strings.HasSuffix(function, "/internal/dataset.(*openShard).hashParts"):
			return "hasher"
		case strings.HasSuffix(function, "/internal/dataset.(*Builder).writeBatch"):
			return "writer"
		}
	}
	return goroutine
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

// addStages divides the CPU time of a build among its stages, and what is alone, as samples fell on them.
func (f *BuildFigures) addStages(s *samples) {
	counts := s.stages
	for _, n := range counts {
		f.Samples += n
	}
	for _, name := range slices.Sorted(maps.Keys(s.alone)) {
		cpu := f.CPUSeconds * float64(s.alone[name]) / float64(max(f.Samples, 1))
		f.Alone = append(f.Alone, AloneCost{name, cpu, cpu / max(float64(f.TextBytes)/1e9, 1e-9)})
	}
	slices.SortStableFunc(f.Alone, func(a, b AloneCost) int { return cmp.Compare(b.CPUSeconds, a.CPUSeconds) })
	if len(f.Alone) > 0 && f.Alone[0].SecondsPerGB > 0 {
		f.BoundMBPerSecond = 1000 / f.Alone[0].SecondsPerGB
	}
	for _, stage := range stages {
		c := StageCost{Stage: stage}
		if counts[stage] > 0 && f.CPUSeconds > 0 {
			c.CPUSeconds = f.CPUSeconds * float64(counts[stage]) / float64(f.Samples)
			c.MBPerCPUSecond = float64(f.TextBytes) / 1e6 / c.CPUSeconds
		}
		f.Stages = append(f.Stages, c)
	}
}

// Package doctor finds the limits of this machine (processors, memory, disks, GPUs, Python) and the settings that fit
// them.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/resident"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize/builtin"
)

// Machine is what is known about this machine.
type Machine struct {
	Processors    int              `json:"processors"` // available to this process
	Memory        int64            `json:"memory_bytes,omitempty"`
	Available     int64            `json:"memory_available_bytes,omitempty"`
	CgroupLimit   int64            `json:"cgroup_memory_bytes,omitempty"` // 0 if there is none
	SharedMemory  *space           `json:"shared_memory,omitempty"`
	Disk          *space           `json:"disk,omitempty"`
	DiskSpeed     float64          `json:"disk_write_mb_per_s,omitempty"`
	DiskError     string           `json:"disk_error,omitempty"`
	DefaultMemory int64            `json:"default_memory_bytes"`
	SmallestCaps  map[string]int64 `json:"smallest_caps_bytes"` // for each built-in tokenizer, with default settings
	Platform      string           `json:"platform"`
	GPUs          []gpu            `json:"gpus"`
	GPUError      string           `json:"gpu_error,omitempty"` // why nvidia-smi could not list the GPUs
	Python        *python          `json:"python,omitempty"`
	Settings      []setting        `json:"settings"`

	gpuErr error // why there is no list of GPUs
}

// space is a file system's size and what is free of it for this user.
type space struct {
	Path  string `json:"path"`
	Total int64  `json:"bytes"`
	Free  int64  `json:"free_bytes"`
}

// python is the interpreter that python3 starts.
type python struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Torch   string `json:"torch,omitempty"` // its version; "" if it is not installed
	Error   string `json:"error,omitempty"`
}

// setting is a setting that fits this machine.
type setting struct {
	For    string `json:"for"` // the command, or what else it is for
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// Examine looks at this machine.
func Examine(ctx context.Context) (*Machine, error) {
	m := &Machine{Processors: runtime.GOMAXPROCS(0), DefaultMemory: resident.DefaultMemory(),
		SmallestCaps: map[string]int64{}, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, name := range builtin.Names() {
		plan, err := ingest.PlanMemory(option.Options{Settings: option.Settings{Tokenizer: name},
			Resources: option.Resources{Memory: 1 << 30}})
		if err != nil {
			return nil, err
		}
		m.SmallestCaps[name] = plan.Smallest
	}
	m.Memory, m.Available = systemMemory()
	if limit, err := memlimit.FromCgroup(); err == nil && (m.Memory == 0 || int64(limit) < m.Memory) {
		m.CgroupLimit = int64(limit)
	}
	m.SharedMemory = spaceOf("/dev/shm")
	m.examineDisk(ctx)
	m.Python = findPython(ctx)
	var gpus []gpu
	gpus, m.gpuErr = listGPUs(ctx)
	m.GPUs = append([]gpu{}, gpus...)
	if m.gpuErr != nil && !errors.Is(m.gpuErr, exec.ErrNotFound) {
		m.GPUError = m.gpuErr.Error()
	}
	m.Settings = m.settings()
	return m, nil
}

// Text describes the machine for people.
func (m *Machine) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s for this process\n", m.Platform, units.Plural(m.Processors, "processor"))
	if m.Memory > 0 {
		fmt.Fprintf(&b, "memory: %s, %s of it available\n", size(m.Memory), size(m.Available))
	}
	if m.CgroupLimit > 0 {
		fmt.Fprintf(&b, "control group: at most %s of memory for everything in this container\n",
			size(m.CgroupLimit))
	} else {
		b.WriteString("control group: no memory limit\n")
	}
	if s := m.SharedMemory; s != nil {
		fmt.Fprintf(&b, "shared memory: %s, %s free (%s); dsload uses none of it, workers of a torch DataLoader do\n",
			size(s.Total), size(s.Free), s.Path)
	}
	if d := m.Disk; d != nil {
		fmt.Fprintf(&b, "disk: %s free of %s (%s)", size(d.Free), size(d.Total), d.Path)
		if m.DiskError != "" {
			fmt.Fprintf(&b, "; its speed cannot be measured: %s", m.DiskError)
		} else {
			fmt.Fprintf(&b, ", writes %.0f MB/s", m.DiskSpeed)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "default memory cap of a build: %s (256MiB, or half of the control group's or machine's limit if "+
		"that is less)\n", size(m.DefaultMemory))
	for _, name := range builtin.Names() {
		fmt.Fprintf(&b, "smallest cap with tokenizer %s and %s: %dMiB\n", name, units.Plural(m.Processors, "worker"),
			(m.SmallestCaps[name]+1<<20-1)>>20)
	}
	writeGPUs(&b, m.GPUs, m.gpuErr)
	b.WriteString(m.Python.text())
	b.WriteString("\nsettings that fit:\n")
	for _, s := range m.Settings {
		option := s.Name + " " + s.Value
		if !strings.HasPrefix(s.Name, "--") {
			option = s.Name + "=" + s.Value
		}
		fmt.Fprintf(&b, "  %-8s %-26s %s\n", s.For, option, s.Reason)
	}
	return b.String()
}

func (p *python) text() string {
	switch {
	case p == nil:
		return "Python: none found (python3 is not on PATH)\n"
	case p.Error != "":
		return fmt.Sprintf("Python: %s does not work: %s\n", p.Path, p.Error)
	case p.Torch == "":
		return fmt.Sprintf("Python: %s (%s), without torch: batches are numpy arrays\n", p.Version, p.Path)
	}
	return fmt.Sprintf("Python: %s (%s), torch %s\n", p.Version, p.Path, p.Torch)
}

// pythonTimeout limits how long Python may take to answer. It may be on a slow disk.
const pythonTimeout = 10 * time.Second

// pythonQuestion prints the version of Python, then that of torch without importing it.
const pythonQuestion = `import sys, importlib.metadata as m
print(".".join(map(str, sys.version_info[:3])))
try: print(m.version("torch"))
except m.PackageNotFoundError: print()`

// pythons returns the interpreters of the active environment, on PATH, and the one that started the program, as far as
// there are such.
func pythons() (paths []string) {
	names := []string{"python3", os.Getenv("DSLOAD_PYTHON")}
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		names = slices.Insert(names, 0, filepath.Join(env, "bin", "python3"))
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// findPython asks the first of pythons. It returns nil if there is none.
func findPython(ctx context.Context) *python {
	paths := pythons()
	if len(paths) == 0 {
		return nil
	}
	p := &python{Path: paths[0]}
	ctx, cancel := context.WithTimeout(ctx, pythonTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path, "-c", pythonQuestion)
	cmd.Dir = "/" // so that nothing is imported from this folder
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	version, torch, _ := strings.Cut(strings.TrimRight(string(out), "\n"), "\n")
	switch {
	case err != nil:
		p.Error = err.Error()
	case version == "":
		p.Error = "no answer"
	default:
		p.Version, p.Torch = version, strings.TrimSpace(torch)
	}
	return p
}

const (
	// speedBytes is how much is written to measure a disk, for at most speedTime.
	speedBytes = 64 << 20
	speedTime  = time.Second
)

// examineDisk measures the space of this folder's disk, and how fast it writes and syncs.
func (m *Machine) examineDisk(ctx context.Context) {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	if m.Disk = spaceOf(dir); m.Disk == nil {
		return
	}
	if m.Disk.Free < 4*speedBytes {
		m.DiskError = "too little is free to write to it"
		return
	}
	if m.DiskSpeed, err = writeSpeed(ctx, dir); err != nil {
		m.DiskError = err.Error()
	}
}

// writeSpeed writes a file into a folder, syncs it, removes it, and returns the speed in MB/s.
func writeSpeed(ctx context.Context, dir string) (speed float64, err error) {
	f, err := os.CreateTemp(dir, ".dsload-doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	piece := make([]byte, 1<<20)
	for i := range piece { // not zeros, which some file systems compress away
		piece[i] = byte(i * i >> 7)
	}
	start, written := time.Now(), 0
	for written < speedBytes && time.Since(start) < speedTime && ctx.Err() == nil {
		n, err := f.Write(piece)
		if err != nil {
			return 0, err
		}
		written += n
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return float64(written) / 1e6 / max(time.Since(start).Seconds(), 1e-6), ctx.Err()
}

const (
	// rowBytes is what a row of the default 512 tokens takes on disk, its other columns included.
	rowBytes = 512*2 + 20
	// wantedRows is the number of rows that batch and accumulation should make in an optimizer
	// step.
	wantedRows = 32
	// gptFixed and gptRow are the memory of training GPT-2 (124 M parameters) with AdamW under
	// bfloat16 autocast, as dsload.memory.estimate computes it at 512 tokens a row: for any batch,
	// and for each of its rows. Gradients are kept between micro-batches.
	gptFixed, gptRow = 2_239_916_544, 593_467_392
	// gpuShare is the share of a GPU's free memory to plan with.
	gpuShare = 0.9
)

// settings returns the settings that fit the machine, each with its reason.
func (m *Machine) settings() []setting {
	limit := cmp.Or(m.CgroupLimit, m.Memory)
	why := fmt.Sprintf("a build needs no more to run at full speed with %s; a larger cap only allows longer records",
		units.Plural(m.Processors, "worker"))
	if limit > 0 && m.DefaultMemory < 256<<20 {
		why = fmt.Sprintf("half of the %s that this process may take, so that the page cache keeps the rest",
			size(limit))
	}
	out := []setting{
		{"build", "--memory", size(m.DefaultMemory), why},
		{"build", "--workers", fmt.Sprint(m.Processors),
			"one for each processor that this process may use; more only wait for each other"},
	}
	if m.Disk != nil {
		rows := m.Disk.Free / 2 / rowBytes
		if rows -= rows % units.SecondDigit(rows); rows > 0 {
			out = append(out, setting{"build", "--max-examples", fmt.Sprint(rows),
				fmt.Sprintf("rows of 512 tokens that fill half of the %s free here; "+
					"the rest is for checkpoints of the model", size(m.Disk.Free))})
		}
	}
	out = append(out, setting{"serve", "--memory", size(serve.DefaultMemory),
		"holds 256 trainers that read 32 rows of 512 tokens each; larger batches need more"})
	for _, g := range m.GPUs {
		out = append(out, g.settings()...)
	}
	return out
}

// settings returns batch and accumulation for the free memory of a GPU.
func (g *gpu) settings() []setting {
	free := g.Total - g.Used
	if g.Total == 0 {
		return nil
	}
	name := fmt.Sprintf("GPU %d", g.Index)
	rows := (int64(gpuShare*float64(free)) - gptFixed) / gptRow
	if rows < 1 {
		return []setting{{name, "batch_size", "1",
			fmt.Sprintf("%s are free of %s, too little for GPT-2 with AdamW, which takes %s for one row; "+
				"end what holds the rest, or train a smaller model", size(free), size(g.Total),
				size(gptFixed+gptRow))}}
	}
	batch := int64(1)
	for batch*2 <= min(rows, wantedRows) {
		batch *= 2
	}
	return []setting{
		{name, "batch_size", fmt.Sprint(batch),
			fmt.Sprintf("of the %s free, 90%% holds %d rows of 512 tokens of GPT-2 (124 M parameters, AdamW, "+
				"bfloat16 autocast); dsload.memory.find_max_batch_size measures your model", size(free), rows)},
		{name, "accumulation", fmt.Sprint(wantedRows / batch),
			fmt.Sprintf("with this batch makes an optimizer step of %d rows", wantedRows)},
	}
}

func size(n int64) string { return units.Size(n).String() }

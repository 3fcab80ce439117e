package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"go.yaml.in/yaml/v3"
)

const (
	maxConfigurationBytes = 4 << 20
	// checkTimeout limits how long Python may take. It may be on a slow disk, and a sweep may have thousands of points.
	checkTimeout = 2 * time.Minute
)

// Checkup is what dsload.memory.check_configuration found.
type Checkup struct {
	Text   string          `json:"text"`
	Result json.RawMessage `json:"result"`
	Absurd int             `json:"absurd"` // the number of values that cannot be meant
}

// ReadConfiguration reads a training or sweep configuration: YAML, of which JSON is a part.
func ReadConfiguration(path string) (map[string]any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigurationBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxConfigurationBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxConfigurationBytes)
	}
	var value any
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.Join(strings.Fields(strings.NewReplacer("yaml: ", "", "unmarshal errors:", "").Replace(err.Error())), " "))
	}
	config, ok := plainJSON(value).(map[string]any)
	if !ok {
		return nil, errors.New("it has no settings, each a name, a colon and a value")
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("it has several documents; give one of them")
	}
	return config, nil
}

// plainJSON returns what YAML has and JSON has not as what JSON has.
func plainJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = plainJSON(v[key])
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[fmt.Sprint(key)] = plainJSON(value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = plainJSON(v[i])
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	}
	return v
}

// Check asks dsload's Python package, which estimates memory, about a configuration that was read from path.
func Check(ctx context.Context, path string, config map[string]any) (*Checkup, error) {
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	asked := map[string]any{"config": config, "folder": folder}
	if gpus, _ := listGPUs(ctx); len(gpus) > 0 { // without one, what fits is not known
		most := slices.MaxFunc(gpus, func(a, b gpu) int { return int(a.Total - a.Used - b.Total + b.Used) })
		if most.Total > 0 {
			asked["free"] = most.Total - most.Used
		}
	}
	question, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	paths := pythons()
	for _, path := range paths {
		c, err := check(ctx, path, question)
		if !errors.Is(err, errNoPackage) {
			return c, err
		}
	}
	return nil, fault.Kindf(fault.Usage, "the Python package dsload estimates what a configuration needs, and is in none of "+
		"these, or too old: %s; activate an environment that has it, or 'pip install -U dsload'",
		cmp.Or(strings.Join(paths, ", "), "python3 is not on PATH"))
}

// errNoPackage means that an interpreter does not have the Python package.
var errNoPackage = errors.New("no package dsload")

// checkProgram is not a module of -m, so that nothing is imported from this folder.
const checkProgram = "import sys; sys.path = [p for p in sys.path if p]; from dsload.memory.checkup import main; main()"

func check(ctx context.Context, python string, question []byte) (*Checkup, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", checkProgram)
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(question), &stderr, time.Second
	out, err := cmd.Output()
	c := new(Checkup)
	if err == nil {
		err = json.Unmarshal(out, c)
	}
	if said := stderr.String(); err != nil && strings.Contains(said, "No module named 'dsload") {
		return nil, errNoPackage
	} else if err != nil {
		lines := strings.Split(strings.TrimSpace(said), "\n")
		return nil, fmt.Errorf("%s: %w: %s", python, err, lines[len(lines)-1])
	}
	return c, nil
}

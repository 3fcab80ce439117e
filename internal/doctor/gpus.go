package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/procgroup"
)

// nvidiaSMITimeout limits all queries together, since a driver may hang.
const nvidiaSMITimeout = 2 * time.Second

// gpu is a device as nvidia-smi describes it.
type gpu struct {
	Index     int          `json:"index"`
	Name      string       `json:"name"`
	UUID      string       `json:"uuid"`
	Total     int64        `json:"memory_bytes"`      // 0 if the driver does not report it
	Used      int64        `json:"memory_used_bytes"` // everything on the device, together
	Processes []gpuProcess `json:"processes"`
}

// gpuProcess is a process that holds memory of a device.
type gpuProcess struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Used    *int64 `json:"memory_bytes"` // nil if the driver does not report it
	Here    bool   `json:"here"`         // the process is visible here, not in another container
}

// listGPUs asks nvidia-smi for the devices and their processes. Without nvidia-smi on PATH the
// error is exec.ErrNotFound.
func listGPUs(ctx context.Context) ([]gpu, error) {
	tool, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, exec.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, nvidiaSMITimeout)
	defer cancel()
	devices, err := queryNVIDIA(ctx, tool, "--query-gpu=index,uuid,name,memory.total,memory.used")
	if err != nil {
		return nil, err
	}
	gpus, err := parseGPUs(devices)
	if err != nil {
		return nil, err
	}
	apps, err := queryNVIDIA(ctx, tool, "--query-compute-apps=gpu_uuid,pid,used_memory,process_name")
	if err != nil {
		return nil, err
	}
	return gpus, addProcesses(gpus, apps, "/proc")
}

func queryNVIDIA(ctx context.Context, tool, query string) ([]byte, error) {
	cmd := exec.Command(tool, query, "--format=csv,noheader,nounits")
	cmd.SysProcAttr = procgroup.Attributes()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err = <-done:
		case <-ctx.Done(): // a process that hangs in the driver may outlive even its kill, so it is not awaited
			procgroup.Kill(cmd.Process)
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("nvidia-smi did not answer within %v and was killed; run it by itself: "+
				"if that hangs too, so does the driver or a GPU", nvidiaSMITimeout)
		}
	}
	if err != nil {
		// nvidia-smi reports driver errors on stdout.
		output := strings.Join(strings.Fields(stderr.String()+" "+stdout.String()), " ")
		return nil, fmt.Errorf("nvidia-smi: %w: %s", err, output)
	}
	return stdout.Bytes(), nil
}

// nvidiaRows splits nvidia-smi's CSV into rows of n fields. Fields are separated by a comma and a
// space and never quoted; the last one may hold commas.
func nvidiaRows(out []byte, n int) ([][]string, error) {
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line == "" || line == "No devices were found" {
			continue
		}
		fields := strings.SplitN(line, ", ", n)
		if len(fields) != n {
			return nil, fmt.Errorf("nvidia-smi: cannot read the line %q: it has %d fields, want %d", line,
				len(fields), n)
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		rows = append(rows, fields)
	}
	return rows, nil
}

// mebibytes parses a number of MiB. If the driver does not report it, nvidia-smi prints a note in
// brackets, such as [N/A].
func mebibytes(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n << 20, err == nil && n >= 0
}

func parseGPUs(out []byte) ([]gpu, error) {
	rows, err := nvidiaRows(out, 5)
	if err != nil {
		return nil, err
	}
	gpus := make([]gpu, 0, len(rows))
	for _, row := range rows {
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: cannot read the index %q of a GPU", row[0])
		}
		g := gpu{Index: index, UUID: row[1], Name: row[2], Processes: []gpuProcess{}}
		g.Total, _ = mebibytes(row[3])
		g.Used, _ = mebibytes(row[4])
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// addProcesses adds each process to its device. It reads their command lines from procfs.
func addProcesses(gpus []gpu, out []byte, procfs string) error {
	rows, err := nvidiaRows(out, 4)
	if err != nil {
		return err
	}
	for _, row := range rows {
		pid, err := strconv.Atoi(row[1])
		if err != nil {
			return fmt.Errorf("nvidia-smi: cannot read the process id %q", row[1])
		}
		p := gpuProcess{PID: pid, Command: row[3]}
		if used, ok := mebibytes(row[2]); ok {
			p.Used = &used
		}
		// The id is the host's. In a container it may belong to another process or to none, so the
		// name must agree.
		if line, err := os.ReadFile(filepath.Join(procfs, row[1], "cmdline")); err == nil && len(line) > 0 {
			args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
			first, _, _ := strings.Cut(row[3], " ")
			a, b := filepath.Base(args[0]), filepath.Base(first)
			if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) { // such as python3 and python3.12
				p.Here, p.Command = true, strings.Join(args, " ")
			}
		}
		for i := range gpus {
			if gpus[i].UUID == row[0] {
				gpus[i].Processes = append(gpus[i].Processes, p)
			}
		}
	}
	return nil
}

// writeGPUs prints the devices and their processes, or why they cannot be listed.
func writeGPUs(w io.Writer, gpus []gpu, err error) {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Fprintln(w, "GPUs: none found (nvidia-smi is not on PATH)")
		return
	case err != nil:
		fmt.Fprintf(w, "GPUs: cannot be listed: %v\n", err)
		return
	case len(gpus) == 0:
		fmt.Fprintln(w, "GPUs: none")
	}
	for _, g := range gpus {
		fmt.Fprintf(w, "GPU %d, %s: %s of %s in use\n", g.Index, g.Name, size(g.Used), size(g.Total))
		for _, p := range g.Processes {
			used := "memory unknown"
			if p.Used != nil {
				used = size(*p.Used)
			}
			end := fmt.Sprintf("; to end it: kill %d, and kill -9 %d if it is there after 10 s", p.PID, p.PID)
			if !p.Here {
				end = fmt.Sprintf(" (not visible from here: another container's or another user's; to end it, kill %d there, "+
					"once ps -p %d shows it)", p.PID, p.PID)
			}
			fmt.Fprintf(w, "    process %d, %s: %s%s\n", p.PID, used, shortened(p.Command, 100), end)
		}
		if len(g.Processes) == 0 && g.Used > 1<<30 {
			fmt.Fprintln(w, "    no process is listed: what holds the memory is not visible from here, "+
				"such as in another container")
		}
	}
}

// shortened returns s on one line, cut to n runes.
func shortened(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

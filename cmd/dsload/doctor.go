package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/doctor"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/memrecord"
	"github.com/spf13/cobra"
)

func newDoctorCommand() *cobra.Command {
	var asJSON bool
	var html string
	cmd := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "This machine's limits; what is wrong in a configuration; where memory went in a record",
		Long: `Without an argument: processors, memory and the control group's limit, shared memory, the disk of
this folder and how fast it writes, each GPU with the processes that hold its memory (from
nvidia-smi) and how to end them, Python and torch, and settings that fit, each with its reason.

With a configuration, as YAML or JSON (a sweep of Weights & Biases, settings of Hugging Face's
Trainer, axolotl, LLaMA-Factory, torchtune and the like): values that cannot be meant, which
exit with 3, and what each point needs on a device. The Python package estimates it.

With a memory record of the Python package (MemoryRecorder, or python -m dsload.memory.record
script.py): where memory went, why, and what to change; --html draws it over time.`,
		Example: `  dsload doctor
  dsload doctor sweep.yaml
  dsload doctor memory.jsonl
  dsload doctor memory.jsonl --html memory.html
  dsload doctor --json | jq '.settings'`,
		Args: numArgs(0, 1, "one file at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				if html != "" {
					return usagef("%s--html draws a memory record; "+
						"name one, as in '%s memory.jsonl --html memory.html'", label(cmd), cmd.CommandPath())
				}
				m, err := doctor.Examine(cmd.Context())
				if err != nil {
					return err
				}
				return printResult(out, asJSON, m, m.Text())
			}
			return examineFile(cmd.Context(), out, args[0], html, asJSON)
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "draw a record's memory over time to `FILE`: one self-contained page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// recordMemory is the soft limit on the Go runtime while a record is read. The memory for a record
// has a fixed maximum, so this limits only garbage.
const recordMemory = 96 << 20

// examineFile examines a memory record or a configuration.
func examineFile(ctx context.Context, w io.Writer, path, html string, asJSON bool) error {
	if err := checkPage(html); err != nil {
		return fmt.Errorf("doctor --html %s: %w", html, err)
	}
	setSoftLimit(recordMemory)
	a, err := readRecord(path, html)
	if !errors.Is(err, memrecord.ErrNotRecord) {
		if err != nil {
			return fmt.Errorf("read record %s: %w", path, err)
		}
		return printResult(w, asJSON, a, describeRecord(a, html))
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext != ".jsonl" {
		config, noConfig := doctor.ReadConfiguration(path)
		switch {
		case noConfig == nil && html != "":
			return usagef("doctor --html %s: it draws a memory record, and %s is a configuration; leave it out", html, path)
		case noConfig == nil:
			return checkConfiguration(ctx, w, path, config, asJSON)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, ext):
			return fault.Kindf(fault.Corrupt, "read configuration %s: %w; correct it", path, noConfig)
		}
	}
	return fault.Kindf(fault.Corrupt, "read record %s: %w; give the file that MemoryRecorder wrote, or a configuration "+
		"as YAML or JSON", path, err)
}

func checkConfiguration(ctx context.Context, w io.Writer, path string, config map[string]any, asJSON bool) error {
	c, err := doctor.Check(ctx, path, config)
	if err == nil {
		err = printResult(w, asJSON, c.Result, c.Text+"\n")
	}
	if err != nil {
		return fmt.Errorf("doctor %s: %w", path, err)
	}
	if c.Absurd > 0 {
		return fault.Kindf(fault.Corrupt, "doctor %s: %s cannot be meant; correct what is called absurd", path,
			plural(c.Absurd, "value"))
	}
	return nil
}

// readRecord reads a memory record, and draws it where html names a page.
func readRecord(path, html string) (*memrecord.Analysis, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%v", err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, usagef("it is a folder; give a memory record or a configuration")
	}
	if html == "" {
		return memrecord.Read(f)
	}
	page := new(bytes.Buffer)
	a, err := memrecord.Timeline(page, f, path)
	if err == nil {
		err = writePage(html, page.Bytes())
	}
	return a, err
}

func describeRecord(a *memrecord.Analysis, html string) string {
	var b strings.Builder
	how, peak := "highest memory in", ""
	if a.OutOfMemory {
		how = "ran out of memory in"
	}
	if a.Peak != nil {
		peak = ", peak " + formatSize(int64(*a.Peak))
	}
	if a.Runs > 1 {
		fmt.Fprintf(&b, "the last of %d runs in the record: ", a.Runs)
	}
	fmt.Fprintf(&b, "%d steps%s; %s phase %s\n", a.Steps, peak, how, a.Where)
	for _, v := range a.Verdicts {
		fmt.Fprintf(&b, "%s (%s): %s\n", v.Kind, v.Phase, v.Message)
		for _, action := range v.Actions {
			fmt.Fprintf(&b, "    - %s\n", action)
		}
	}
	if len(a.Verdicts) == 0 {
		b.WriteString("nothing out of the ordinary\n")
	}
	if html != "" {
		fmt.Fprintf(&b, "wrote %s\n", html)
	}
	return b.String()
}

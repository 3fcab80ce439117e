package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
		Use:   "doctor [RECORD]",
		Short: "This machine's limits and what settings fit it; explain a trainer's memory record",
		Long: `Without an argument: processors, memory and the control group's limit, shared memory, the disk of
this folder and how fast it writes, each GPU with the processes that hold its memory (from
nvidia-smi), Python and torch, and settings that fit, each with its reason. With a
RECORD of the Python package (MemoryRecorder, or python -m dsload.memory.record
script.py): where memory went, why, and what to change; --html draws it over time.`,
		Example: `  dsload doctor
  dsload doctor memory.jsonl
  dsload doctor memory.jsonl --html memory.html
  dsload doctor --json | jq '.settings'`,
		Args: numArgs(0, 1, "one record at most"),
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
			return examineRecord(out, args[0], html, asJSON)
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "draw a record's memory over time to `FILE`: one self-contained page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// recordMemory is the soft limit on the Go runtime while a record is read. The memory for a record
// has a fixed maximum, so this limits only garbage.
const recordMemory = 96 << 20

func examineRecord(w io.Writer, path, html string, asJSON bool) error {
	if err := checkPage(html); err != nil {
		return fmt.Errorf("doctor --html %s: %w", html, err)
	}
	setSoftLimit(recordMemory)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("read record: %v", err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var a *memrecord.Analysis
	if html == "" {
		a, err = memrecord.Read(f)
	} else {
		page := new(bytes.Buffer)
		if a, err = memrecord.Timeline(page, f, path); err == nil {
			if err := writePage(html, page.Bytes()); err != nil {
				return fmt.Errorf("doctor --html %s: %w", html, err)
			}
		}
	}
	if errors.Is(err, memrecord.ErrNotRecord) {
		return fault.Kindf(fault.Corrupt, "read record %s: %w; give the file that MemoryRecorder wrote", path,
			err)
	}
	if err != nil {
		return fmt.Errorf("read record %s: %w", path, err)
	}
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
	return printResult(w, asJSON, a, b.String())
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// textSources returns the arguments of serve that are text, and the flags about it, or nothing if
// all are datasets.
func textSources(args []string, text *pflag.FlagSet) (sources, flags []string, err error) {
	asked := given(text)
	sources = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return isServedFolder(arg) || len(asked) == 0 && inBucket(arg)
	})
	if !slices.ContainsFunc(sources, func(arg string) bool { return isText(arg, len(asked) > 0) }) {
		if len(asked) > 0 {
			return nil, nil, usagef("serve: %s is about text, and %s was built already; "+
				"leave the flag out, or give the text", strings.SplitN(asked[0], "=", 2)[0], args[0])
		}
		return nil, nil, nil
	}
	if len(sources) < len(args) {
		return nil, nil, usagef("serve: %s is text and others are datasets; "+
			"build the text, and serve it as NAME=FOLDER",
			source.Redact(sources[0]))
	}
	return sources, asked, nil
}

// buildText builds text into the cache and returns the folder of the dataset. It does so in a process of its own, whose
// memory is free once it has ended, and which ends with this one, however that ends.
func buildText(cmd *cobra.Command, sources, flags []string) (folder string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("build %s: find this program: %w", sourcesText(sources), err)
	}
	args := append([]string{"build", "--cached", "--exit-with-stdin", "--json"}, flags...)
	child := exec.CommandContext(cmd.Context(), self, append(append(args, "--"), sources...)...)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) } // it stops at a checkpoint
	child.WaitDelay = stopGrace
	var stdout bytes.Buffer
	child.Stdout, child.Stderr = &stdout, cmd.ErrOrStderr()
	if _, err = child.StdinPipe(); err == nil { // which only this process holds, until the child has ended
		err = child.Run()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return "", &printedError{exit.ExitCode()}
	case err != nil && cmd.Context().Err() != nil:
		return "", fault.Kindf(fault.Interrupted, "build %s: interrupted", sourcesText(sources))
	case err != nil:
		return "", fmt.Errorf("build %s: %w", sourcesText(sources), err)
	}
	var summary struct {
		Out      string   `json:"out"`
		Rejected int64    `json:"rejected"`
		Dropped  int64    `json:"dropped"`
		Notes    []string `json:"notes"` // what the build left out, or did in an unexpected way
	}
	if err := json.Unmarshal(stdout.Bytes(), &summary); err != nil {
		return "", fmt.Errorf("build %s: read its summary: %w", sourcesText(sources), err)
	}
	for _, note := range append(losses(summary.Rejected, summary.Dropped), summary.Notes...) {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+oneLine(note))
	}
	return summary.Out, nil
}

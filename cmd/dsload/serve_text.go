package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// textSources returns the arguments of serve that are text, and the flags about it, or nothing if
// all are datasets.
func textSources(args []string, text *pflag.FlagSet) (sources, flags []string, err error) {
	asked := givenOptions(text)
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
			uris.Redact(sources[0]))
	}
	return sources, asked, nil
}

// buildText builds text into the cache and returns the folder of the dataset, in a process which ends with this one,
// however that ends.
func buildText(cmd *cobra.Command, sources, flags []string) (folder string, err error) {
	summary, err := runBuildProcess(cmd, append([]string{"--cached", "--exit-with-stdin"}, flags...), sources, nil, true)
	return summary.Out, err
}

// builtSummary is what is read of the summary of a build.
type builtSummary struct {
	Out      string   `json:"out"`
	Stopped  string   `json:"stopped"`
	Rejected int64    `json:"rejected"`
	Dropped  int64    `json:"dropped"`
	Notes    []string `json:"notes"` // what the build left out, or did in an unexpected way
}

// runBuildProcess builds sources in a process of its own, whose memory is free once it has ended, and shows its notes.
// Without a stdin the process has one that ends with this one. An interrupt waits for a checkpoint of a build that resumes.
func runBuildProcess(cmd *cobra.Command, flags, sources []string, stdin io.Reader, resumes bool) (summary builtSummary, err error) {
	self, err := os.Executable()
	if err != nil {
		return summary, fmt.Errorf("build %s: find this program: %w", uris.Several(sources), err)
	}
	args := append([]string{"build", "--json"}, flags...)
	child := exec.CommandContext(cmd.Context(), self, append(append(args, "--"), sources...)...)
	if resumes {
		child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) } // it stops at a checkpoint
	}
	child.WaitDelay = stopGrace
	var stdout bytes.Buffer
	child.Stdin, child.Stdout, child.Stderr = stdin, &stdout, cmd.ErrOrStderr()
	if stdin == nil {
		_, err = child.StdinPipe() // only this process holds it, until the child has ended
	}
	if err == nil {
		err = child.Run()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return summary, &printedError{exit.ExitCode()}
	case err != nil && cmd.Context().Err() != nil:
		return summary, fault.Kindf(fault.Interrupted, "build %s: interrupted", uris.Several(sources))
	case err != nil:
		return summary, fmt.Errorf("build %s: %w", uris.Several(sources), err)
	}
	if err := json.Unmarshal(stdout.Bytes(), &summary); err != nil {
		return summary, fmt.Errorf("build %s: read its summary: %w", uris.Several(sources), err)
	}
	for _, note := range append(losses(summary.Rejected, summary.Dropped), summary.Notes...) {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+oneLine(note))
	}
	return summary, nil
}

// textFlags adds the flags of build that say how text becomes rows, except those that the command
// already has, and returns them.
func textFlags(flags *pflag.FlagSet) *pflag.FlagSet {
	var o option.Options
	added := pflag.NewFlagSet("text", pflag.ContinueOnError)
	for _, opt := range option.All() {
		if !opt.ChangesBytes() || flags.Lookup(opt.Name) != nil {
			continue
		}
		addOption(added, &o, opt.Name)
		flag := added.Lookup(opt.Name)
		help.InGroup(added, help.GroupForText+strings.ToLower(string(opt.Group)), opt.Name)
		if flag.Shorthand != "" && flags.ShorthandLookup(flag.Shorthand) != nil {
			flag.Shorthand = ""
		}
		flags.AddFlag(flag)
	}
	return added
}

// isServedFolder reports whether an argument of serve is the folder of a dataset, finished or not, or of parts of one.
func isServedFolder(arg string) bool {
	dir := serve.DatasetDir(arg)
	_, err := os.Stat(filepath.Join(dir, shardfile.ManifestName))
	return err == nil || dataset.HoldsBuild(shardfile.OS(), dir)
}

// isText reports whether an argument of serve that is not a dataset is text to build: an existing
// file or, with flags about text, anything that build takes.
func isText(arg string, asked bool) bool {
	if asked || strings.HasPrefix(arg, "synth://") {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// servable extends a check of serve's arguments: unless one is the address of text, all must be
// folders or datasets in buckets.
func servable(text *pflag.FlagSet, check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		asked := len(givenOptions(text)) > 0
		if slices.ContainsFunc(args, func(arg string) bool {
			return strings.Contains(arg, "://") &&
				isText(arg, asked)
		}) {
			return check(cmd, args)
		}
		rest := slices.DeleteFunc(slices.Clone(args), inBucket)
		if err := folders(cobra.ArbitraryArgs)(cmd, rest); err != nil {
			return err
		}
		return check(cmd, args)
	}
}

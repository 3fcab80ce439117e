package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is that of the next release, or of the one this is. The Python package has the same: make
// release (release/release.py) checks all places.
const version = "0.1.0"

// commit is set by the linker in released binaries and by make. A plain `go build` has Go's build
// information.
var commit = ""

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and platform",
		Example: "  dsload version\n  dsload version --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printResult(cmd.OutOrStdout(), asJSON, map[string]string{"version": version, "commit": buildCommit(),
				"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}, versionLine())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// versionLine returns the output of version and --version.
func versionLine() string {
	return fmt.Sprintf("dsload %s (%s) %s %s/%s\n", version, buildCommit(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// buildCommit returns the commit of the binary, with "-dirty" if the checkout had changes, or
// "unknown".
func buildCommit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	rev := settings["vcs.revision"]
	if rev == "" {
		return "unknown"
	}
	if rev = rev[:min(12, len(rev))]; settings["vcs.modified"] == "true" {
		rev += "-dirty"
	}
	return rev
}

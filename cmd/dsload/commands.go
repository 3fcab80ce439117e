package main

import "github.com/spf13/cobra"

// commands returns every command, in the order of the help. Each has its own file.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newBuildCommand(),
		newPlanCommand(),
		newMergeCommand(),
		newServeCommand(),
		newInspectCommand(),
		newVerifyCommand(),
		newStatsCommand(),
		newExportCommand(),
		newWhichCommand(),
		newTokenizerCommand(),
		newBenchCommand(),
		newDoctorCommand(),
		newHealthCommand(),
		newVersionCommand(),
	}
}

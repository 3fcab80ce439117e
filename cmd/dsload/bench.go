package main

import "github.com/spf13/cobra"

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: tokenizing, building, feeding",
		Long: `Measures dsload on this machine, each part as CPU-seconds and peak memory of whole
processes. Machines are noisy: compare ratios of runs made together, best of several.`,
		Example: `  dsload bench tokenize corpus.txt --workers 1
  dsload bench build corpus.txt --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchTokenizeCommand(), newBenchBuildCommand(), newBenchFeedCommand())
	return cmd
}

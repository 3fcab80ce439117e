package main

import (
	"github.com/dsload/dsload/loader/build"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choice is the values that a flag of any command completes to, and whether files are among them.
type choice struct {
	words []string
	files bool
}

// choices returns the values of flags that take one of a few words, by their names.
func choices() map[string]choice {
	all := map[string]choice{
		"progress":  {progressModes, false},
		"log-level": {logLevels, false},
		"documents": {documentRuns, false},
	}
	for _, opt := range build.AllOptions() {
		if len(opt.Words) > 0 || opt.Files {
			all[opt.Name] = choice{opt.Words, opt.Files}
		}
	}
	return all
}

// completes makes a flag of cmd complete to words.
func completes[T ~string](cmd *cobra.Command, flag string, words []T) {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = string(word)
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(all,
		cobra.ShellCompDirectiveNoFileComp)) // fails only for unknown or registered names
}

// registerCompletions registers the choices for the flags of cmd and its subcommands. A command
// that registered its own completion keeps it.
func registerCompletions(cmd *cobra.Command) {
	known := choices()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		choice, ok := known[f.Name]
		if _, taken := cmd.GetFlagCompletionFunc(f.Name); !ok || taken {
			return
		}
		if !choice.files {
			completes(cmd, f.Name, choice.words)
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(choice.words,
			cobra.ShellCompDirectiveDefault)) // likewise
	})
	for _, sub := range cmd.Commands() {
		registerCompletions(sub)
	}
}

package main

import (
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choice is the values that a flag of any command completes to. If files is set, it completes to files too.
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
	for _, opt := range option.All() {
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
	if f := cmd.Flags().Lookup(flag); f != nil && !help.HasValueName(f) {
		help.NameValues(cmd.Flags(), help.ValueChoice, flag)
	}
}

// addCompletion adds cobra's command that prints the scripts of shells, in our words.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, _ := root.Find([]string{"completion"}) // it was just added
	cmd.Short = "Print the script that completes commands, flags and values in a shell"
	cmd.Long = ""
	cmd.Example = "  dsload completion bash\n  dsload completion zsh"
	// Cobra's own would answer an unknown shell with its help.
	cmd.Args, cmd.RunE = noArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range cmd.Commands() {
		name := shell.Name()
		shell.Short = "For " + name
		shell.Long = "Prints the script that completes dsload's commands, flags and the values of flags in " + name + ". " +
			"Source it where the shell starts."
		shell.Example = completionSetup[name]
		shell.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = "leave out the descriptions" })
	}
}

// completionSetup is how each shell takes its script: now, and in every new shell.
var completionSetup = map[string]string{
	"bash": "  source <(dsload completion bash)\n  dsload completion bash > /etc/bash_completion.d/dsload",
	"zsh":  "  source <(dsload completion zsh)\n  dsload completion zsh > \"${fpath[1]}/_dsload\"",
	"fish": "  dsload completion fish | source\n  dsload completion fish > ~/.config/fish/completions/dsload.fish",
	"powershell": "  dsload completion powershell | Out-String | Invoke-Expression\n" +
		"  dsload completion powershell >> $PROFILE",
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
			cobra.ShellCompDirectiveDefault)) // fails only for unknown or registered names
	})
	for _, sub := range cmd.Commands() {
		registerCompletions(sub)
	}
}

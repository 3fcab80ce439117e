package main

import (
	"math"
	"strings"

	"github.com/spf13/cobra"
)

// label returns the prefix of a command's errors, such as "build: ". It is "" for the program itself, whose name is
// the prefix of every error.
func label(cmd *cobra.Command) string {
	if _, name, ok := strings.Cut(cmd.CommandPath(), " "); ok {
		return name + ": "
	}
	return ""
}

// noArgs, numArgs, oneArg and someArgs are like cobra's checks, but exit with the code for wrong usage.

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	if parent := cmd.Parent(); parent != nil && parent.Name() == "tokenizer" {
		return usagef("%stakes no arguments, got %q; it reads standard input: %s < FILE", label(cmd), args[0],
			cmd.CommandPath())
	}
	return usagef("%stakes no arguments, got %q; see '%s -h'", label(cmd), args[0], cmd.CommandPath())
}

// numArgs checks the number of arguments, whose meaning what says.
func numArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("%stakes %s, got %s; see '%s -h'", label(cmd), what, plural(len(args), "argument"),
				cmd.CommandPath())
		}
		return nil
	}
}

func oneArg(what string) cobra.PositionalArgs { return numArgs(1, 1, what) }

func someArgs(what string) cobra.PositionalArgs { return numArgs(1, math.MaxInt, what) }

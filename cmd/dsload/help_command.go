package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/spelling"
	"github.com/spf13/cobra"
)

// showHelp answers -h with a screen and --help with everything.
func showHelp(cmd *cobra.Command, args []string) {
	page := shortPage
	if before := slices.Index(args, "--"); before >= 0 {
		args = args[:before]
	}
	if slices.Contains(args, "--help") {
		page = newHelpPage
	}
	_ = page(cmd).write(cmd.OutOrStdout()) // nobody is left to report to
}

// newHelpCommand returns the command that shows the help of another one, or of a topic.
func newHelpCommand() *cobra.Command {
	var man string
	cmd := &cobra.Command{
		Use:   "help [COMMAND or TOPIC]",
		Short: "Show all the help of a command or a topic",
		Long: `Shows the help of a command, as its --help does, or of a topic. Without an argument it
lists both.`,
		Example: `  dsload help formats
  dsload help tokenizer train
  dsload help --man man1       # manual pages, for 'man -l man1/dsload-build.1'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if man != "" {
				return writeManual(cmd.Root(), man)
			}
			return runHelp(cmd, args)
		},
		ValidArgsFunction: completeHelp,
	}
	cmd.Flags().StringVar(&man, "man", "", "write a manual page for each command into this folder")
	nameValues(cmd.Flags(), "DIR", "man")
	return cmd
}

func runHelp(cmd *cobra.Command, args []string) error {
	out := cmd.OutOrStdout()
	if len(args) == 1 {
		if page := topicNamed(args[0]); page != nil {
			return page.write(out)
		}
	}
	found, rest, err := cmd.Root().Find(args)
	switch {
	case err == nil && (len(rest) == 0 || !found.HasSubCommands()):
		return newHelpPage(found).write(out)
	case found.HasParent():
		return unknownCommand(found, rest[0])
	}
	if near := spelling.Nearest(args[0], topicNames()); near != "" {
		return usagef("help: there is no command or topic %q; did you mean 'dsload help %s'? See 'dsload help'",
			args[0], near)
	}
	return unknownCommand(found, args[0])
}

// completeHelp completes commands, their commands, and topics.
func completeHelp(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) == 0 {
		for _, c := range found.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name()+"\t"+c.Short)
			}
		}
	}
	if len(args) == 0 {
		for _, t := range topics() {
			names = append(names, t.name+"\t"+t.short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// writeManual writes the manual pages of cmd and its commands into a folder.
func writeManual(cmd *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), manualPage(cmd), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writeManual(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

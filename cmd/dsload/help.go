package main

import (
	"io"
	"slices"

	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/spf13/cobra"
)

// showHelp answers -h with a screen and --help with everything.
func showHelp(cmd *cobra.Command, args []string) {
	page := help.Short
	if before := slices.Index(args, "--"); before >= 0 {
		args = args[:before]
	}
	if slices.Contains(args, "--help") {
		page = help.Of
	}
	_ = writeHelp(cmd.OutOrStdout(), page(cmd)) // nobody is left to report to
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
				return help.WriteManual(cmd.Root(), version, man)
			}
			return runHelp(cmd, args)
		},
		ValidArgsFunction: help.Complete,
	}
	cmd.Flags().StringVar(&man, "man", "", "write a manual page for each command into this folder")
	help.NameValues(cmd.Flags(), "DIR", "man")
	return cmd
}

func runHelp(cmd *cobra.Command, args []string) error {
	out := cmd.OutOrStdout()
	if len(args) == 1 {
		build, _, _ := cmd.Root().Find([]string{"build"}) // it is always there
		if page := help.Topic(build, args[0]); page != nil {
			return writeHelp(out, page)
		}
	}
	found, rest, err := cmd.Root().Find(args)
	switch {
	case err == nil && (len(rest) == 0 || !found.HasSubCommands()):
		return writeHelp(out, help.Of(found))
	case found.HasParent():
		return unknownCommand(found, rest[0])
	}
	if near := spelling.Nearest(args[0], help.TopicNames()); near != "" {
		return usagef("help: there is no command or topic %q; did you mean 'dsload help %s'? See 'dsload help'",
			args[0], near)
	}
	return unknownCommand(found, args[0])
}

// writeHelp writes a page of help: in colours to a terminal that has them.
func writeHelp(w io.Writer, page *help.Page) error {
	style := help.Style{Width: help.MaxWidth}
	if terminal := unguarded(w); isTerminal(terminal) {
		style.Width = min(max(terminalWidth(terminal)(), 40), help.MaxWidth)
		if colourful(terminal) {
			style.Title, style.Name, style.Word, style.End = "\x1b[1;32m", "\x1b[36m", "\x1b[2;36m", endColours
			w = terminal // colours are ours, and help quotes nothing from outside
		}
	}
	_, err := io.WriteString(w, page.Render(style))
	return err
}

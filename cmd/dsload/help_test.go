package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/help"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f for each command that people see.
func everyCommand(f func(*cobra.Command)) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		f(cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				visit(sub)
			}
		}
	}
	visit(newRootCommand())
}

// text returns a page as a pipe gets it.
func text(p *help.Page) string { return p.Render(help.Style{Width: help.MaxWidth}) }

// checkFits reports lines of a page that are too long, and pages that are.
func checkFits(t *testing.T, page, text string, maxLines int) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > maxLines {
		t.Errorf("%s has %d lines, want at most %d", page, len(lines), maxLines)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > help.MaxWidth {
			t.Errorf("%s has a line of %d characters: %s", page, n, line)
		}
	}
}

func TestHelpFits(t *testing.T) {
	const screen, any = 40, 1000
	manual := t.TempDir()
	if err := help.WriteManual(newRootCommand(), "1", manual); err != nil {
		t.Fatal(err)
	}
	everyCommand(func(cmd *cobra.Command) {
		checkFits(t, cmd.CommandPath()+" -h", text(help.Short(cmd)), screen)
		long := text(help.Of(cmd))
		checkFits(t, cmd.CommandPath()+" --help", long, any)
		man, err := os.ReadFile(filepath.Join(manual, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil && cmd.Name() != "help" {
			t.Error(err)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if shown := strings.Contains(long, "--"+f.Name); shown == f.Hidden {
				t.Errorf("%s --help shows --%s: %v", cmd.CommandPath(), f.Name, shown)
			}
			dashed := strings.ReplaceAll("--"+f.Name, "-", `\-`)
			if shown := strings.Contains(string(man), dashed); err == nil && shown == f.Hidden {
				t.Errorf("the manual page of %s has --%s: %v", cmd.CommandPath(), f.Name, shown)
			}
		})
	})
	for _, topic := range help.TopicNames() {
		checkFits(t, "help "+topic, text(help.Topic(newBuildCommand(), topic)), any)
	}
}

// valueWords are the words that help has for values, besides those that it explains.
var valueWords = strings.Fields("DIR FILE TOKENIZER PATTERN FIELD FIELDS FIELD=VALUE CONDITION CHARACTER GLOB RE TOKEN DAY " +
	"SOURCE TEMPLATE HOST:PORT ADDR URL I/N DATASET QUERY FORMATS NAME NAME=W,… COMMAND PATH KEY ROLES")

// TestValuesHaveOneWord holds help to one word for each type, and every flag to a group.
func TestValuesHaveOneWord(t *testing.T) {
	known := append(slices.Clone(valueWords), help.ValueCount, help.ValueSize, help.ValueTime, help.ValueShare,
		help.ValueChoice)
	everyCommand(func(cmd *cobra.Command) {
		others := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if help.Title(f) == help.GroupOther && !f.Hidden && f.Name != "help" {
				others++
			}
			word := help.ValueWord(f)
			if f.Value.Type() == "bool" && word != "" || f.Value.Type() != "bool" && !slices.Contains(known, word) {
				t.Errorf("%s calls the value of --%s %q", cmd.CommandPath(), f.Name, word)
			}
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && word == help.ValueChoice {
				t.Errorf("%s --%s does not complete to its words", cmd.CommandPath(), f.Name)
			}
		})
		if others > 1 {
			t.Errorf("%s has %d flags in no group", cmd.CommandPath(), others)
		}
	})
}

// TestHelpColours compares the page of a terminal with that of a pipe, and wraps one to a narrow terminal.
func TestHelpColours(t *testing.T) {
	cmd := newBuildCommand()
	const mark = "\x01" // stands nowhere else
	style := help.Style{Width: help.MaxWidth, Title: mark, Name: mark, Word: mark, End: endColours}
	coloured := help.Of(cmd).Render(style)
	if n := strings.Count(coloured, mark); n < 100 || n != strings.Count(coloured, endColours) {
		t.Errorf("%d colours begin and %d end", n, strings.Count(coloured, endColours))
	}
	if plain := strings.NewReplacer(mark, "", endColours, "").Replace(coloured); plain != text(help.Of(cmd)) {
		t.Errorf("colours change the text")
	}
	inTable := false
	for line := range strings.SplitSeq(help.Of(cmd).Render(help.Style{Width: 60}), "\n") {
		if title, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			inTable = title != "Usage" && title != "Examples" // whose lines are not wrapped
		}
		if n := utf8.RuneCountInString(line); inTable && n > 60 {
			t.Errorf("a terminal of 60 columns gets %d: %s", n, line)
		}
	}
}

// A command line that begins with a command has that command, and the others are not made.
func TestOneCommandIsMade(t *testing.T) {
	all := newRootCommand().Commands()
	few := len(newRootCommand(all[0].Name()).Commands())
	for _, cmd := range all {
		root := newRootCommand(cmd.Name())
		found, _, err := root.Find([]string{cmd.Name()})
		if err != nil || found.Name() != cmd.Name() || found.GroupID != cmd.GroupID {
			t.Errorf("%s is not there alone: %v", cmd.Name(), err)
		}
		if made := len(root.Commands()); cmd.GroupID != groupAbout && made != few || made > len(all) {
			t.Errorf("%d commands are made for %s, want %d", made, cmd.Name(), few)
		}
	}
	if few >= len(all) {
		t.Errorf("all %d commands are made for one", few)
	}
}

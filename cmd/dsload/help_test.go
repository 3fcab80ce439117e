package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
func (p *helpPage) text() string { return p.render(helpStyle{width: maxHelpWidth}) }

// checkFits reports lines of a page that are too long, and pages that are.
func checkFits(t *testing.T, page, text string, maxLines int) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > maxLines {
		t.Errorf("%s has %d lines, want at most %d", page, len(lines), maxLines)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxHelpWidth {
			t.Errorf("%s has a line of %d characters: %s", page, n, line)
		}
	}
}

func TestHelpFits(t *testing.T) {
	const screen, any = 40, 1000
	everyCommand(func(cmd *cobra.Command) {
		checkFits(t, cmd.CommandPath()+" -h", shortPage(cmd).text(), screen)
		long := newHelpPage(cmd).text()
		checkFits(t, cmd.CommandPath()+" --help", long, any)
		man := string(manualPage(cmd))
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if shown := strings.Contains(long, "--"+f.Name); shown == f.Hidden {
				t.Errorf("%s --help shows --%s: %v", cmd.CommandPath(), f.Name, shown)
			}
			if shown := strings.Contains(man, roff("--"+f.Name)); shown == f.Hidden {
				t.Errorf("the manual page of %s has --%s: %v", cmd.CommandPath(), f.Name, shown)
			}
		})
	})
	for _, topic := range topics() {
		checkFits(t, "help "+topic.name, topicNamed(topic.name).text(), any)
	}
}

// valueWords are the words that help has for values, besides those of legend.
var valueWords = strings.Fields("DIR FILE TOKENIZER PATTERN FIELD FIELDS FIELD=VALUE CONDITION CHARACTER GLOB RE TOKEN DAY " +
	"SOURCE HOST:PORT ADDR URL I/N DATASET QUERY FORMATS NAME NAME=W,… COMMAND PATH KEY ROLES")

// TestValuesHaveOneWord holds help to one word for each type, and every flag to a group.
func TestValuesHaveOneWord(t *testing.T) {
	known := slices.Clone(valueWords)
	for _, entry := range legend {
		known = append(known, entry[0])
	}
	everyCommand(func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			word := valueWord(f)
			if f.Value.Type() == "bool" && word != "" || f.Value.Type() != "bool" && !slices.Contains(known, word) {
				t.Errorf("%s calls the value of --%s %q", cmd.CommandPath(), f.Name, word)
			}
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && word == valueChoice {
				t.Errorf("%s --%s does not complete to its words", cmd.CommandPath(), f.Name)
			}
		})
		for _, table := range flagTables(cmd) {
			if n := len(table.rows); table.title == groupOther && n > 2 {
				t.Errorf("%s has %d flags in no group", cmd.CommandPath(), n)
			}
		}
	})
}

func TestFlagRow(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	var size, count int64
	flags.StringP("out", "o", "here", "a folder")
	flags.String("eos", "", "a token")
	flags.Var(sizeValue{&size, false}, "bytes", "how much")
	flags.Var(sizeValue{&count, true}, "rows", "how many")
	flags.Duration("for", 120e9, "how long")
	flags.Bool("quick", false, "do it fast")
	nameValues(flags, "DIR", "out")
	nameValues(flags, "TOKEN", "eos")
	flags.Lookup("eos").NoOptDefVal = "auto"
	for name, want := range map[string]helpRow{
		"out":   {"-o, --out", "DIR", "a folder (default here)"},
		"eos":   {"    --eos[=TOKEN]", "", "a token"},
		"bytes": {"    --bytes", "SIZE", "how much"},
		"rows":  {"    --rows", "N", "how many"},
		"for":   {"    --for", "TIME", "how long (default 2m)"},
		"quick": {"    --quick", "", "do it fast"},
	} {
		if got := flagRow(flags.Lookup(name)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 7, "one two|three"},
		{"one two three", 100, "one two three"},
		{"änderung ü", 8, "änderung|ü"},
		{"averylongword x", 5, "averylongword|x"},
		{"  ", 5, ""},
	} {
		if got := strings.Join(wrapped(c.text, c.width), "|"); got != c.want {
			t.Errorf("wrapped(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestHelpColours compares the page of a terminal with that of a pipe, and wraps one to a narrow terminal.
func TestHelpColours(t *testing.T) {
	cmd := newBuildCommand()
	const mark = "\x01" // stands nowhere else
	style := helpStyle{width: maxHelpWidth, title: mark, name: mark, word: mark}
	coloured := newHelpPage(cmd).render(style)
	if n := strings.Count(coloured, mark); n < 100 || n != strings.Count(coloured, endColours) {
		t.Errorf("%d colours begin and %d end", n, strings.Count(coloured, endColours))
	}
	if plain := strings.NewReplacer(mark, "", endColours, "").Replace(coloured); plain != newHelpPage(cmd).text() {
		t.Errorf("colours change the text")
	}
	for _, row := range newHelpPage(cmd).tables {
		var b strings.Builder
		row.write(&b, helpStyle{width: 60})
		for line := range strings.SplitSeq(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > 60 {
				t.Errorf("a terminal of 60 columns gets %d: %s", n, line)
			}
		}
	}
}

func TestRoff(t *testing.T) {
	if got, want := roff(`.a-b 'c\' "…"`), `\&.a\-b \(aqc\e\(aq \(dq\[u2026]\(dq`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for line := range strings.SplitSeq(string(manualPage(newRootCommand())), "\n") {
		macro, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, ".") && !slices.Contains(strings.Fields(".TH .SH .B .PP .TP .nf .fi .BR"), macro) {
			t.Errorf("a line begins with the macro %s", macro)
		}
	}
}

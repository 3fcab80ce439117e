package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A command and its flags are declared once. Its help (-h for a screen, --help for everything), its manual page and
// its completion are made from that. A helpPage is the content of the help and of the manual page.

// usualFlags is the annotation of a command with more than a screen of flags that names those of -h.
const usualFlags = "dsload-usual"

// Annotations of flags.
const (
	flagGroup = "dsload-group" // the title under which help lists the flag
	flagValue = "dsload-value" // what help calls its value
)

// Titles of flags that are not options of a build.
const (
	groupLive        = "Live"
	groupOutput      = string(option.GroupOutput)
	groupLimits      = string(option.GroupLimits)
	groupPartitions  = "Partitions"
	groupMeasurement = "Measurement"
	groupTopics      = "Topics, with 'dsload help TOPIC'"
	groupOther       = "Other"
	groupForText     = "For text: " // before a group of a build's, in a command that may build first
)

// commonGroups are the groups of flags that mean the same in many commands.
var commonGroups = map[string]string{"json": groupOutput, "html": groupOutput, "overwrite": groupOutput,
	"progress": groupLive, "memory": groupLimits, "workers": groupLimits}

// lastGroups returns the titles that come after a command's own, in order.
func lastGroups() (titles []string) {
	for _, group := range option.Groups() {
		titles = append(titles, string(group))
	}
	titles = append(titles, groupPartitions, groupLive)
	for _, group := range option.Groups() {
		titles = append(titles, groupForText+strings.ToLower(string(group)))
	}
	return append(titles, groupOther)
}

// Words for the values of flags. There is one for each type.
const (
	valueCount  = "N"
	valueSize   = "SIZE"
	valueTime   = "TIME"
	valueShare  = "SHARE"
	valueChoice = "WORD"
)

// legend explains the words that are not plain, in the order of its lines.
var legend = [][2]string{
	{valueCount, "a whole number"},
	{valueSize, "bytes, as in 64MiB, 2GB or 1e6"},
	{valueTime, "as in 10s or 5m"},
	{valueShare, "above 0 and at most 1"},
	{valueChoice, "one of the words that its line lists"},
}

// A helpPage is what help shows of a command or a topic.
type helpPage struct {
	name     string      // "dsload build"
	short    string      // one line
	usage    []string    // command lines
	about    []string    // paragraphs; lines that begin with two spaces stay as they are
	examples []string    // command lines; the first two are those of -h
	tables   []helpTable // commands, flags, parameters
	see      []string    // sentences at the end
}

// A helpTable is a list under a title.
type helpTable struct {
	title string
	rows  []helpRow
}

// A helpRow is one line of a table, wrapped: a flag with its value, and what it does.
type helpRow struct {
	name, value, text string
}

// inGroup lists flags under a title of the help.
func inGroup(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, flagGroup, []string{title}) // fails only for unknown names
	}
}

// nameValues sets what help calls the values of flags.
func nameValues(flags *pflag.FlagSet, word string, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, flagValue, []string{word}) // fails only for unknown names
	}
}

// firstOf returns the value of an annotation of a flag, or "".
func firstOf(f *pflag.Flag, annotation string) string {
	if values := f.Annotations[annotation]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// valueWord returns what help calls the value of a flag, or "" if it takes none.
func valueWord(f *pflag.Flag) string {
	if word := firstOf(f, flagValue); word != "" {
		return word
	}
	switch f.Value.Type() {
	case "bool":
		return ""
	case "int", "int64", "uint64":
		return valueCount
	case "duration":
		return valueTime
	case "float64":
		return valueShare
	}
	word, _ := pflag.UnquoteUsage(f)
	return word
}

// flagRow returns the line of a flag.
func flagRow(f *pflag.Flag) helpRow {
	row := helpRow{name: "    --" + f.Name, value: valueWord(f)}
	if f.Shorthand != "" {
		row.name = "-" + f.Shorthand + ", --" + f.Name
	}
	_, row.text = pflag.UnquoteUsage(f)
	switch {
	case row.value == "":
	case f.NoOptDefVal != "": // the value may be left out, and otherwise follows an equals sign
		row.name, row.value = row.name+"[="+row.value+"]", ""
	}
	if slices.Contains([]string{"", "0", "0B", "false", "[]"}, f.DefValue) || strings.Contains(row.text, "(default") {
		return row
	}
	row.text += " (default " + defaultOf(f) + ")"
	return row
}

// defaultOf returns the default of a flag, as it would be typed.
func defaultOf(f *pflag.Flag) string {
	if whole, ok := strings.CutSuffix(f.DefValue, "m0s"); ok && f.Value.Type() == "duration" {
		return whole + "m"
	}
	return f.DefValue
}

// newHelpPage returns the page of a command.
func newHelpPage(cmd *cobra.Command) *helpPage {
	about := cmd.Long
	about = cmp.Or(about, cmd.Short+".")
	p := &helpPage{name: cmd.CommandPath(), short: cmd.Short, about: strings.Split(about, "\n\n")}
	if cmd.Runnable() && !cmd.HasSubCommands() {
		p.usage = append(p.usage, strings.TrimSuffix(cmd.UseLine(), " [flags]")+" [flags]")
	}
	if cmd.HasAvailableSubCommands() {
		p.usage = append(p.usage, p.name+" COMMAND")
		p.tables = commandTables(cmd)
		p.see = append(p.see, "'"+p.name+" COMMAND -h' is a screen about a command, and --help all about it.")
	}
	if cmd.HasExample() {
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			p.examples = append(p.examples, strings.TrimSpace(line))
		}
	}
	if !cmd.HasParent() {
		p.tables = append(p.tables, topicTable())
	}
	if cmd.CommandPath() == "dsload serve" {
		p.tables = append(p.tables, parameterTable()) // which are to requests what flags are to the command
	}
	p.tables = append(p.tables, flagTables(cmd)...)
	return p
}

// commandTables returns the commands of cmd in their groups.
func commandTables(cmd *cobra.Command) (tables []helpTable) {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() && c.Name() != "help" {
			continue
		}
		title := "Commands"
		for _, group := range cmd.Groups() {
			if group.ID == c.GroupID {
				title = group.Title
			}
		}
		tables = addRow(tables, title, helpRow{name: c.Name(), text: c.Short})
	}
	order := func(t helpTable) int {
		return slices.IndexFunc(cmd.Groups(), func(g *cobra.Group) bool { return g.Title == t.title })
	}
	slices.SortStableFunc(tables, func(a, b helpTable) int { return order(a) - order(b) })
	return tables
}

// flagTables returns the flags of cmd in their groups: its own groups as they were declared, then lastGroups.
func flagTables(cmd *cobra.Command) (tables []helpTable) {
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			tables = addRow(tables, cmp.Or(firstOf(f, flagGroup), commonGroups[f.Name], groupOther), flagRow(f))
		}
	})
	tables = addRow(tables, groupOther,
		helpRow{name: "-h, --help", text: "a screen of help (-h), or all of it (--help)"})
	last := lastGroups()
	slices.SortStableFunc(tables, func(a, b helpTable) int {
		return slices.Index(last, a.title) - slices.Index(last, b.title)
	})
	return tables
}

// addRow adds a row to the table of a title.
func addRow(tables []helpTable, title string, row helpRow) []helpTable {
	i := slices.IndexFunc(tables, func(t helpTable) bool { return t.title == title })
	if i < 0 {
		return append(tables, helpTable{title, []helpRow{row}})
	}
	tables[i].rows = append(tables[i].rows, row)
	return tables
}

// shortPage returns what -h shows of a command: what it does, two examples, and the flags that people use.
func shortPage(cmd *cobra.Command) *helpPage {
	p := newHelpPage(cmd)
	p.about = p.about[:1]
	if cmd.HasParent() {
		p.examples = p.examples[:min(2, len(p.examples))]
	} else {
		p.see = append(p.see, topicLine())
		p.tables = slices.DeleteFunc(p.tables, func(t helpTable) bool {
			return t.title == groupTopics || t.title == groupOther
		})
	}
	usual := strings.Fields(cmd.Annotations[usualFlags])
	if len(usual) == 0 {
		return p
	}
	var titles []string
	shown := helpTable{title: "Flags that people use"}
	for _, t := range p.tables {
		if t.title != groupOther {
			titles = append(titles, t.title)
		}
	}
	for _, name := range usual {
		shown.rows = append(shown.rows, flagRow(cmd.Flags().Lookup(name)))
	}
	p.tables = []helpTable{shown}
	p.see = []string{"All flags, with '" + p.name + " --help': " + strings.Join(titles, "; ") + ".",
		topicLine()}
	return p
}

// parameterTable lists the parameters of batches.
func parameterTable() helpTable {
	t := helpTable{title: "Parameters of GET /v1/batches"}
	for _, p := range feed.Parameters() {
		word, text := parameterHelp(p)
		if p.Default != "" {
			text += " (default " + p.Default + ")"
		}
		t.rows = append(t.rows, helpRow{name: p.Name, value: word, text: text})
	}
	return t
}

// parameterHelp returns what help calls the value of a parameter, and what the parameter does.
func parameterHelp(p feed.Parameter) (word, text string) {
	words := p.Words()
	if words == nil {
		return p.Values, p.Help
	}
	last := len(words) - 1
	text = strings.Join(words[:last], ", ") + " or " + words[last]
	if p.Help != "" {
		text += ": " + p.Help
	}
	return valueChoice, text
}

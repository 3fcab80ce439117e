// Package help makes the help of commands (-h for a screen, --help for everything), their manual pages and the topics.
//
//	command, flags -> Page -> text, manual page
//
// A command and its flags are declared once, in cmd, with annotations: the title under which a flag is listed, and what
// its value is called. A Page holds what is shown, whatever the form.
package help

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UsualFlags is the annotation of a command with more than a screen of flags that names those of -h.
const UsualFlags = "dsload-usual"

// Annotations of flags.
const (
	flagGroup = "dsload-group" // the title under which help lists the flag
	flagValue = "dsload-value" // what help calls its value
)

// Titles of flags that are not options of a build.
const (
	GroupLive        = "Live"
	GroupOutput      = string(option.GroupOutput)
	GroupLimits      = string(option.GroupLimits)
	GroupPartitions  = "Partitions"
	GroupMeasurement = "Measurement"
	groupTopics      = "Topics, with 'dsload help TOPIC'"
	GroupOther       = "Other"
	GroupForText     = "For text: " // before a group of a build's, in a command that may build first
)

// commonGroups are the groups of flags that mean the same in many commands.
var commonGroups = map[string]string{"json": GroupOutput, "html": GroupOutput, "overwrite": GroupOutput,
	"progress": GroupLive, "memory": GroupLimits, "workers": GroupLimits}

// lastGroups returns the titles that come after a command's own, in order.
func lastGroups() (titles []string) {
	for _, group := range option.Groups() {
		titles = append(titles, string(group))
	}
	titles = append(titles, GroupPartitions, GroupLive)
	for _, group := range option.Groups() {
		titles = append(titles, GroupForText+strings.ToLower(string(group)))
	}
	return append(titles, GroupOther)
}

// Words for the values of flags. There is one for each type.
const (
	ValueCount  = "N"
	ValueSize   = "SIZE"
	ValueTime   = "TIME"
	ValueShare  = "SHARE"
	ValueChoice = "WORD"
)

// legend explains the words that are not plain, in the order of its lines.
var legend = [][2]string{
	{ValueCount, "a whole number"},
	{ValueSize, "bytes, as in 64MiB, 2GB or 1e6"},
	{ValueTime, "as in 10s or 5m"},
	{ValueShare, "above 0 and at most 1"},
	{ValueChoice, "one of the words that its line lists"},
}

// A Page is what help shows of a command or a topic.
type Page struct {
	name     string   // "dsload build"
	short    string   // one line
	usage    []string // command lines
	about    []string // paragraphs; lines that begin with two spaces stay as they are
	examples []string // command lines; the first two are those of -h
	tables   []table  // commands, flags, parameters
	see      []string // sentences at the end
}

// A table is a list under a title.
type table struct {
	title string
	rows  []entry
}

// An entry is one line of a table, wrapped: a flag with its value, and what it does.
type entry struct {
	name, value, text string
}

// InGroup lists flags under a title of the help.
func InGroup(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, flagGroup, []string{title}) // fails only for unknown names
	}
}

// NameValues sets what help calls the values of flags.
func NameValues(flags *pflag.FlagSet, word string, names ...string) {
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

// Title returns the title under which help lists a flag.
func Title(f *pflag.Flag) string {
	return cmp.Or(firstOf(f, flagGroup), commonGroups[f.Name], GroupOther)
}

// HasValueName reports whether NameValues has named the values of a flag.
func HasValueName(f *pflag.Flag) bool { return firstOf(f, flagValue) != "" }

// ValueWord returns what help calls the value of a flag, or "" if it takes none.
func ValueWord(f *pflag.Flag) string {
	if word := firstOf(f, flagValue); word != "" {
		return word
	}
	switch f.Value.Type() {
	case "bool":
		return ""
	case "int", "int64", "uint64":
		return ValueCount
	case "duration":
		return ValueTime
	case "float64":
		return ValueShare
	}
	word, _ := pflag.UnquoteUsage(f)
	return word
}

// flagRow returns the line of a flag.
func flagRow(f *pflag.Flag) entry {
	row := entry{name: "    --" + f.Name, value: ValueWord(f)}
	if f.Shorthand != "" {
		row.name = "-" + f.Shorthand + ", --" + f.Name
	}
	_, row.text = pflag.UnquoteUsage(f)
	if row.value != "" && f.NoOptDefVal != "" { // the value may be left out, and otherwise follows an equals sign
		row.name, row.value = row.name+"[="+row.value+"]", ""
	}
	if slices.Contains([]string{"", "0", "0B", "false", "[]"}, f.DefValue) || strings.Contains(row.text, "(default") {
		return row
	}
	usual := f.DefValue
	if whole, ok := strings.CutSuffix(usual, "m0s"); ok && f.Value.Type() == "duration" {
		usual = whole + "m"
	}
	row.text += " (default " + usual + ")"
	return row
}

// Of returns the whole page of a command.
func Of(cmd *cobra.Command) *Page {
	p := &Page{name: cmd.CommandPath(), short: cmd.Short,
		about: strings.Split(cmp.Or(cmd.Long, cmd.Short+"."), "\n\n")}
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
		t := table{title: groupTopics}
		for _, topic := range topics() {
			t.rows = append(t.rows, entry{name: topic.name, text: topic.short})
		}
		p.tables = append(p.tables, t)
	}
	if cmd.CommandPath() == "dsload serve" {
		p.tables = append(p.tables, parameterTable()) // they are to requests what flags are to the command
	}
	p.tables = append(p.tables, flagTables(cmd)...)
	return p
}

// commandTables returns the commands of cmd in their groups.
func commandTables(cmd *cobra.Command) (tables []table) {
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
		tables = addRow(tables, title, entry{name: c.Name(), text: c.Short})
	}
	order := func(t table) int {
		return slices.IndexFunc(cmd.Groups(), func(g *cobra.Group) bool { return g.Title == t.title })
	}
	slices.SortStableFunc(tables, func(a, b table) int { return order(a) - order(b) })
	return tables
}

// flagTables returns the flags of cmd in their groups: its own groups as they were declared, then lastGroups.
func flagTables(cmd *cobra.Command) (tables []table) {
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			tables = addRow(tables, Title(f), flagRow(f))
		}
	})
	tables = addRow(tables, GroupOther,
		entry{name: "-h, --help", text: "a screen of help (-h), or all of it (--help)"})
	last := lastGroups()
	slices.SortStableFunc(tables, func(a, b table) int {
		return slices.Index(last, a.title) - slices.Index(last, b.title)
	})
	return tables
}

func addRow(tables []table, title string, row entry) []table {
	i := slices.IndexFunc(tables, func(t table) bool { return t.title == title })
	if i < 0 {
		return append(tables, table{title, []entry{row}})
	}
	tables[i].rows = append(tables[i].rows, row)
	return tables
}

// Short returns what -h shows of a command: what it does, two examples, and the flags that people use.
func Short(cmd *cobra.Command) *Page {
	p := Of(cmd)
	p.about = p.about[:1]
	if cmd.HasParent() {
		p.examples = p.examples[:min(2, len(p.examples))]
	} else {
		p.see = append(p.see, topicLine())
		p.tables = slices.DeleteFunc(p.tables, func(t table) bool {
			return t.title == groupTopics || t.title == GroupOther
		})
	}
	usual := strings.Fields(cmd.Annotations[UsualFlags])
	if len(usual) == 0 {
		return p
	}
	var titles []string
	shown := table{title: "Flags that people use"}
	for _, t := range p.tables {
		if t.title != GroupOther {
			titles = append(titles, t.title)
		}
	}
	for _, name := range usual {
		shown.rows = append(shown.rows, flagRow(cmd.Flags().Lookup(name)))
	}
	p.tables = []table{shown}
	p.see = []string{"All flags, with '" + p.name + " --help': " + strings.Join(titles, "; ") + ".",
		topicLine()}
	return p
}

func parameterTable() table {
	t := table{title: "Parameters of GET /v1/batches"}
	for _, p := range feed.Parameters() {
		word, text := Parameter(p)
		if p.Default != "" {
			text += " (default " + p.Default + ")"
		}
		t.rows = append(t.rows, entry{name: p.Name, value: word, text: text})
	}
	return t
}

// Parameter returns what help calls the value of a parameter, and what the parameter does.
func Parameter(p feed.Parameter) (word, text string) {
	words := p.Words()
	if words == nil {
		return p.Values, p.Help
	}
	last := len(words) - 1
	text = strings.Join(words[:last], ", ") + " or " + words[last]
	if p.Help != "" {
		text += ": " + p.Help
	}
	return ValueChoice, text
}

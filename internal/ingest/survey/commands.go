package survey

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/shell"
)

// A Command builds a group of files that need the same options.
type Command struct {
	Command string `json:"command"`
	What    string `json:"what"` // what the files hold
	Files   int    `json:"files"`
	Records int64  `json:"records"`
	Sampled bool   `json:"sampled,omitempty"` // there are more records
	Damaged bool   `json:"damaged,omitempty"` // it leaves out what cannot be read
}

// A group is the files of one command.
type group struct {
	way            way
	flags          []string
	prompt, target string
	choices        []string
	alone          bool // no other choice can be added
	damaged        bool
	files          []*File
}

// takes reports whether a file can be built with the group, and adds its choices if so.
func (g *group) takes(f *File) bool {
	switch {
	case g.way != f.way || g.prompt != f.Prompt || g.target != f.Target || g.damaged != f.Damaged() ||
		!slices.Equal(g.flags, f.flags):
		return false
	case len(f.choices) == 0 || len(g.choices) == 0: // lines of text go with any
		g.choices, g.alone = slices.Concat(g.choices, f.choices), g.alone || f.alone
		return true
	case g.alone || f.alone:
		return g.alone && f.alone && slices.Equal(g.choices, f.choices)
	}
	all, files := slices.Clone(g.choices), []*File{f}
	for _, name := range f.choices {
		if !slices.Contains(all, name) {
			all, files = append(all, name), append(slices.Clone(g.files), f)
		}
	}
	if slices.ContainsFunc(files, func(f *File) bool { return f.misreads(all) }) {
		return false
	}
	g.choices = all
	return true
}

// misreads reports whether one of the choices that is not the file's own comes before its own, and is a field of it.
func (f *File) misreads(choices []string) bool {
	last := 0
	for i, name := range choices {
		if slices.Contains(f.choices, name) {
			last = i
		}
	}
	return slices.ContainsFunc(choices[:last], func(name string) bool {
		return !slices.Contains(f.choices, name) &&
			slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Name == name })
	})
}

// commands adds the commands that build what was found.
func (s *surveyor) commands() {
	var groups []*group
	for _, f := range s.report.Files {
		if f.way == "" || f.Records == 0 || !nameable(f.name) {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.takes(f) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{f.way, f.flags, f.Prompt, f.Target, f.choices, f.alone, f.Damaged(), nil})
		}
		f.group = groups[i]
		f.group.files = append(f.group.files, f)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { // what is damaged comes last
		return cmp.Compare(map[bool]int{true: 1}[a.damaged], map[bool]int{true: 1}[b.damaged])
	})
	taken := map[string]bool{}
	for _, g := range groups {
		c := Command{What: string(g.way), Files: len(g.files), Damaged: g.damaged}
		words := []string{"dsload", "build"}
		for _, source := range s.sources(g) {
			words = append(words, shell.Quote(source))
		}
		for _, flag := range g.options() {
			words = append(words, shell.Quote(flag))
		}
		for _, f := range g.files {
			c.Records += f.Records
			c.Sampled = c.Sampled || f.Sampled
		}
		c.Command = strings.Join(append(words, "--out", shell.Quote(s.out(g, taken))), " ")
		s.report.Commands = append(s.report.Commands, c)
	}
}

// options are the flags by which the files are read.
func (g *group) options() (flags []string) {
	switch field := strings.Join(g.choices, "|"); {
	case g.way == asChat:
		flags = []string{"--format", "chat", "--chat-template", "chatml"}
	case g.way == asPairs:
		flags = []string{"--causal-pairs", "--prompt", g.prompt, "--target", g.target}
	case field != "" && field != defaultField:
		flags = []string{"--text-field", field}
	}
	if flags = append(flags, g.flags...); g.damaged {
		flags = append(flags, "--on-bad-record", "skip")
	}
	return flags
}

// nameable reports whether a name is shown as it is, so that a command can have it.
func nameable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// sources are the arguments that lead to the files of a group, and to no others that a build would read: folders where
// all below them is the group's, or a folder without few others.
func (s *surveyor) sources(g *group) (names []string) {
	mixed := map[string]bool{} // arguments and folders with files of others
	var others []string        // below the only argument
	literal := len(s.Paths) == 1
	for _, f := range s.report.Files {
		if f.refused || f.Records == 0 && f.Bad == 0 && f.Error.IsZero() || f.group == g {
			continue
		}
		mixed[f.arg] = true
		for up := parent(f.name, f.arg); up != ""; up = parent(up, f.arg) {
			mixed[up] = true
		}
		rest, below := strings.CutPrefix(f.name, strings.TrimSuffix(f.arg, "/")+"/")
		others = append(others, "/"+rest)
		literal = literal && below && !strings.ContainsAny(rest, `*?[{\`)
	}
	named := map[string]bool{}
	for _, f := range g.files {
		name := f.name
		if !mixed[f.arg] {
			name = f.arg
		}
		for up := parent(name, f.arg); up != "" && !mixed[up]; up = parent(up, f.arg) {
			name = up
		}
		literal = literal && len(f.Members) == 0
		if name = uris.Redact(shell.Argument(name)); !named[name] {
			named[name] = true
			names = append(names, name)
		}
	}
	if literal && len(names) > manyNames+2*len(others) {
		names = []string{uris.Redact(shell.Argument(s.Paths[0]))}
		for _, name := range others {
			names = append(names, "--exclude", name)
		}
	}
	for _, pattern := range s.Include {
		names = append(names, "--include", pattern)
	}
	for _, pattern := range s.Exclude {
		names = append(names, "--exclude", pattern)
	}
	return names
}

// manyNames is how many names of files a command has before it names those instead that it leaves out.
const manyNames = 8

// parent returns the folder that a file or folder lies in, if it is below a folder that is an argument, else "".
func parent(name, arg string) string {
	root, slash := strings.TrimSuffix(arg, "/"), ""
	if uris.IsAddress(arg) {
		slash = "/"
	} else {
		root = filepath.Clean(arg)
	}
	if name = strings.TrimSuffix(name, "/"); name == root || name == arg {
		return ""
	}
	dir := "."
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir = name[:max(i, 1)]
	}
	switch {
	case dir == root:
		return arg
	case strings.HasPrefix(dir, root+"/"), root == "." && !filepath.IsAbs(dir) && !uris.IsAddress(dir):
		return dir + slash
	}
	return ""
}

// out returns the folder of a command's dataset, which does not exist.
func (s *surveyor) out(g *group, taken map[string]bool) string {
	base := "dsload"
	if len(s.Paths) == 1 {
		name := path.Base(filepath.ToSlash(filepath.Clean(uris.WithoutQuery(s.Paths[0]))))
		name, _, _ = strings.Cut(strings.TrimLeft(name, "."), ".")
		if base = cmp.Or(name, base); strings.ContainsAny(base, "/*?[{:-") {
			base = "dsload"
		}
	}
	kind := map[way]string{asText: "-data", asChat: "-chats", asPairs: "-pairs"}[g.way]
	if g.damaged {
		kind += "-damaged"
	}
	for i := 1; ; i++ {
		name := base + kind
		if i > 1 {
			name += fmt.Sprintf("-%d", i)
		}
		if _, err := os.Lstat(name); err != nil && !taken[name] {
			taken[name] = true
			return name
		}
	}
}

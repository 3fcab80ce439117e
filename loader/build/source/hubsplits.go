package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dsload/dsload/loader/remote"
	"go.yaml.in/yaml/v3"
)

// Which files of a repository of the Hub are read where the address names no file, as the package
// datasets chooses them:
//
//   - The head of README.md may list configurations, each with the files of its splits. The one
//     marked as default is taken, or the one named default, or the first. One that names only a
//     folder is read like a dataset of its own.
//   - Else the names of files and folders show their splits.
//   - Of several kinds of files the most frequent is taken.
//
// Of the splits only train is read, unless the address leads to another: a build makes its own
// split val, and reading what a model is tested with would be silent harm. What was left out is
// reported.

// splitWords are the words in names that stand for a split.
var splitWords = []struct {
	split string
	word  *regexp.Regexp
}{
	{splitTrain, splitWord("train|training")},
	{splitValidation, splitWord("validation|valid|dev|val")},
	{splitTest, splitWord("test|testing|eval|evaluation")},
}

const splitTrain, splitValidation, splitTest = "train", "validation", "test"

func splitWord(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[-._ 0-9])(?:` + words + `)(?:[-._ 0-9]|$)`)
}

// splitOf returns the split that a name stands for, "" for none.
func splitOf(name string) string {
	for _, s := range splitWords {
		if s.word.MatchString(name) {
			return s.split
		}
	}
	return ""
}

// splitOfFolders is splitOf for the folders of a path.
func splitOfFolders(name string) string {
	for folder := range strings.SplitSeq(path.Dir(name), "/") {
		if s := splitOf(folder); s != "" {
			return s
		}
	}
	return ""
}

// splitOfFile is splitOf for the name of a file, without its folders.
func splitOfFile(name string) string { return splitOf(path.Base(name)) }

// splitOfPath is splitOf for a path. Where the file and its folders disagree, train is not it.
func splitOfPath(name string) string {
	file, folder := splitOfFile(name), splitOfFolders(name)
	if folder == "" || folder == splitTrain && file != "" {
		return file
	}
	return folder
}

// splitChoice chooses among the files of a dataset by their names.
type splitChoice struct {
	active  bool
	files   map[string]int // by the split of their names
	paths   map[string]int // by the split of their names and folders
	kinds   map[string]int // by what nameKind says
	decided bool
	splits  func(string) string // finds the split of a name; nil if names do not show it
	kind    string              // that is read; "" for any
	left    map[string]int      // files left out, by split
	read    map[string]int      // files read, by split, if mixed
	others  int                 // files of other kinds left out
	kept    int
	mixed   bool // no name stands for train, but some for other splits: everything is read
	notes   []string
}

// wants counts a file on the way into the list.
func (c *splitChoice) wants(name string) bool {
	if base := path.Base(name); !c.active || isHidden(base) || isDescribing(base) {
		return true
	}
	c.files[splitOfFile(name)]++
	c.paths[splitOfPath(name)]++
	c.kinds[nameKind(name)]++
	return true
}

// dataKinds are the extensions of files of data, before that of a compression.
var dataKinds = []string{".parquet", ".jsonl", ".json", ".csv", ".ndjson", ".tsv", ".txt", ".arrow", ".jl", ".ldjson",
	".tokens", ".text", ".tar", ".zip"}

func (c *splitChoice) decide() {
	c.decided, c.left, c.read = true, map[string]int{}, map[string]int{}
	switch {
	case c.paths[splitTrain] > 0:
		c.splits = splitOfPath
	case c.files[splitTrain] > 0:
		c.splits = splitOfFile
	default:
		c.mixed = len(c.paths) > 1 || c.paths[""] == 0
	}
	most := 0
	for _, ext := range dataKinds {
		n := 0
		for kind, k := range c.kinds {
			if strings.HasPrefix(kind, ext) && (kind == ext || kind[len(ext)] == '.') {
				n += k
			}
		}
		if n > most {
			c.kind, most = ext, n
		}
	}
}

// drops reports whether a file of the list is left out.
func (c *splitChoice) drops(key, name string) bool {
	if !c.active {
		return false
	}
	if !c.decided {
		c.decide()
	}
	key = strings.ReplaceAll(key, "\x00", "/")
	if c.kind != "" && extension(name) != c.kind {
		c.others++
		return true
	}
	if c.splits != nil {
		if split := c.splits(key); split != splitTrain {
			c.left[split]++
			return true
		}
	}
	c.kept++
	if c.mixed {
		c.read[splitOfPath(key)]++
	}
	return false
}

// tell adds notes about what was chosen.
func (c *splitChoice) tell(s *Set, arg string) {
	for _, note := range c.notes {
		s.note("%s", note)
	}
	if len(c.left) > 0 {
		s.note("%s: read the split train, %d of its files; left out %s: "+
			"name them in the address, or by a pattern, to read them", arg, c.kept,
			countSplits(c.left))
	}
	if c.mixed {
		s.note("%s: no name shows a split train; read everything, %s: "+
			"name files in the address, or by a pattern, to read fewer",
			arg, countSplits(c.read))
	}
	if c.others > 0 {
		s.note("%s: read its files of the kind %s, left out %d of other kinds: name them by a pattern to read them",
			arg, c.kind, c.others)
	}
}

// countSplits lists how many files each split has.
func countSplits(files map[string]int) string {
	var out []string
	for _, split := range slices.Sorted(maps.Keys(files)) {
		name := split
		if name == "" {
			name = "no split"
		}
		out = append(out, fmt.Sprintf("%d of %s", files[split], name))
	}
	return strings.Join(out, ", ")
}

// hubConfig is a configuration in the head of a README.md.
type hubConfig struct {
	Name      string    `yaml:"config_name"`
	Default   bool      `yaml:"default"`
	DataDir   string    `yaml:"data_dir"`
	DataFiles yaml.Node `yaml:"data_files"`
}

// chooseDataset decides how the files of a dataset of the Hub are chosen.
func (l *remoteListing) chooseDataset(ctx context.Context) error {
	repository, below, ok := remote.HubRepository(l.arg)
	if !ok || len(l.walk.filter.include) > 0 {
		return nil
	}
	if below != "" && splitOfFolders(below+"/x") != "" {
		return nil // the split is named
	}
	l.splits = splitChoice{active: true, files: map[string]int{}, paths: map[string]int{}, kinds: map[string]int{}}
	if below != "" && (strings.HasSuffix(l.arg, "/") || strings.Contains(below, "/")) {
		return nil // a folder
	}
	configs, err := l.set.hubConfigs(ctx, repository)
	if err != nil || len(configs) == 0 {
		return err
	}
	at := slices.IndexFunc(configs, func(c hubConfig) bool { return c.Name == below })
	if below == "" {
		at = max(0, slices.IndexFunc(configs, func(c hubConfig) bool { return c.Default }),
			slices.IndexFunc(configs, func(c hubConfig) bool { return c.Name == "default" }))
		if len(configs) > 1 {
			l.splits.notes = append(l.splits.notes, manyConfigs(repository, configs, at))
		}
	}
	switch {
	case at >= 0:
		return l.useConfig(&configs[at], repository)
	case l.exists(ctx):
		return nil
	}
	return &remote.Error{Kind: fs.ErrNotExist, Text: "there is neither a folder nor a configuration of this name",
		Hint: "name one of the configurations " + nameConfigs(configs)}
}

// exists reports whether the folder holds anything.
func (l *remoteListing) exists(ctx context.Context) bool {
	enough := errors.New("one is enough")
	err := l.set.remoteStore().List(ctx, l.walk.root, func(string, remote.Object) error { return enough })
	return errors.Is(err, enough)
}

func manyConfigs(repository string, configs []hubConfig, at int) string {
	other := configs[0].Name
	if at == 0 {
		other = configs[1].Name
	}
	return fmt.Sprintf("%s: read its configuration %s of %d (%s); name another as %s/%s", repository, configs[at].Name,
		len(configs), nameConfigs(configs), repository, other)
}

// nameConfigs lists the names of configurations.
func nameConfigs(configs []hubConfig) string {
	const most = 8
	var names []string
	for i := range configs {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, configs[i].Name)
	}
	return strings.Join(names, ", ")
}

// useConfig reads the files of a configuration: of its split train, or of the one that stands for
// it.
func (l *remoteListing) useConfig(c *hubConfig, repository string) error {
	w := l.walk
	w.root, w.globs = repository, nil
	splits := c.splits()
	if len(splits) == 0 { // names of files and folders show the splits
		if folder := path.Join("/", c.DataDir); folder != "/" {
			w.root += folder
		}
		return nil
	}
	at := max(0, slices.IndexFunc(splits, func(s configSplit) bool { return splitOf(s.name) == splitTrain }),
		slices.IndexFunc(splits, func(s configSplit) bool { return s.name == splitTrain }))
	read := &splits[at]
	if len(splits) > 1 {
		var left []string
		for i := range splits {
			if i != at {
				left = append(left, splits[i].name)
			}
		}
		slices.Sort(left)
		reason := ""
		if read.name != splitTrain {
			reason = "there is no split train; "
		}
		l.splits.notes = append(l.splits.notes, fmt.Sprintf("%s: %sread the split %s; left out %s: "+
			"name their files to read them",
			repository, reason, read.name, strings.Join(left, ", ")))
	} else if read.name != splitTrain {
		l.splits.notes = append(l.splits.notes, fmt.Sprintf("%s: there is no split train; read %s", repository,
			read.name))
	}
	l.splits.active = false
	l.config = fmt.Sprintf("its README.md names %s as the files of its configuration %s, and there is none",
		strings.Join(read.patterns, ", "), c.Name)
	for _, pattern := range read.patterns {
		for _, choice := range expandBraces(strings.Trim(strings.TrimPrefix(pattern, "./"), "/")) {
			g, err := splitPattern(choice)
			if err != nil {
				return &remote.Error{Kind: ErrUsage, Text: fmt.Sprintf("its README.md names files by %q: %v", pattern,
					err), Hint: "name the files in the address"}
			}
			if g[len(g)-1] == "**" {
				g = append(g, "*")
			}
			w.globs = append(w.globs, g)
		}
	}
	return nil
}

// A configSplit is a split of a configuration.
type configSplit struct {
	name     string
	patterns []string // of its files
}

// splits returns the splits that a configuration lists, in its order.
func (c *hubConfig) splits() (out []configSplit) {
	add := func(split string, n *yaml.Node) {
		list := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			list = n.Content
		}
		for _, item := range list {
			if item.Kind != yaml.ScalarNode || item.Value == "" {
				continue
			}
			at := slices.IndexFunc(out, func(s configSplit) bool { return s.name == split })
			if at < 0 {
				at, out = len(out), append(out, configSplit{name: split})
			}
			out[at].patterns = append(out[at].patterns, path.Join(c.DataDir, item.Value))
		}
	}
	switch n := &c.DataFiles; n.Kind {
	case yaml.ScalarNode:
		add(splitTrain, n)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			add(n.Content[i].Value, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind != yaml.MappingNode {
				add(splitTrain, item)
				continue
			}
			var f struct {
				Split string    `yaml:"split"`
				Path  yaml.Node `yaml:"path"`
			}
			if item.Decode(&f) == nil {
				add(cmp.Or(f.Split, splitTrain), &f.Path)
			}
		}
	}
	return out
}

// maxCard bounds how much of a README.md is looked at: its head, and of that the configurations
// alone.
const maxCard = 1 << 20

// hubConfigs reads the configurations that the README.md of a dataset lists, nil for none.
func (s *Set) hubConfigs(ctx context.Context, repository string) ([]hubConfig, error) {
	o, err := s.remoteStore().Describe(ctx, repository+"/README.md")
	if errors.Is(err, fs.ErrNotExist) && !isExplained(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	card := make([]byte, max(0, min(o.Size, maxCard)))
	n, err := s.remoteStore().Head(ctx, o, card)
	if err != nil {
		return nil, err
	}
	var head struct {
		Configs []hubConfig `yaml:"configs"`
	}
	if block := configsOf(card[:n]); block == nil || yaml.Unmarshal(block, &head) != nil {
		return nil, nil // names must do
	}
	return slices.DeleteFunc(head.Configs,
		func(c hubConfig) bool { return c.DataDir == "" && len(c.splits()) == 0 }), nil
}

// configsOf cuts the member configs out of the YAML at the head of a README.md: the rest can be
// long.
func configsOf(card []byte) (block []byte) {
	lines := bytes.SplitAfter(bytes.TrimPrefix(card, []byte("\ufeff")), []byte("\n"))
	if len(lines) == 0 || string(bytes.TrimSpace(lines[0])) != "---" {
		return nil
	}
	inside := false
	for _, line := range lines[1:] {
		trimmed := bytes.TrimSpace(line)
		switch {
		case string(trimmed) == "---" || string(trimmed) == "...":
			return block
		case bytes.HasPrefix(line, []byte("configs:")):
			inside = true
		case inside && len(trimmed) > 0 && line[0] != ' ' && line[0] != '-' && line[0] != '#':
			inside = false
		}
		if inside {
			block = append(block, line...)
		}
	}
	return block
}

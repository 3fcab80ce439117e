package source

import (
	"bytes"
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
//     marked as default is taken, or the one named default, or the first.
//   - Else the names of files show their splits, or else those of folders.
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

// splitChoice chooses among the files of a dataset by their names.
type splitChoice struct {
	active  bool
	files   map[string]int // by the split of their names
	folders map[string]int // by the split of their folders' names
	kinds   map[string]int // by what nameKind says
	decided bool
	splits  func(string) string // finds the split of a name; nil if names do not show it
	kind    string              // that is read; "" for any
	left    map[string]int      // files left out, by split
	others  int                 // files of other kinds left out
	kept    int
	notes   []string
}

// wants counts a file on the way into the list.
func (c *splitChoice) wants(name string) bool {
	if base := path.Base(name); !c.active || isHidden(base) || isDescribing(base) {
		return true
	}
	c.files[splitOf(path.Base(name))]++
	c.folders[splitOfFolders(name)]++
	c.kinds[nameKind(name)]++
	return true
}

// dataKinds are the extensions of files of data, before that of a compression.
var dataKinds = []string{".parquet", ".jsonl", ".json", ".csv", ".ndjson", ".tsv", ".txt", ".arrow", ".jl", ".ldjson",
	".tokens", ".text"}

func (c *splitChoice) decide() {
	c.decided, c.left = true, map[string]int{}
	switch {
	case c.files[splitTrain] > 0:
		c.splits = func(key string) string { return splitOf(path.Base(key)) }
	case len(c.files) > 1:
	case c.folders[splitTrain] > 0:
		c.splits = splitOfFolders
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
	return false
}

// tell adds notes about what was chosen.
func (c *splitChoice) tell(s *Set, arg string) {
	for _, note := range c.notes {
		s.note("%s", note)
	}
	var left []string
	for _, split := range slices.Sorted(maps.Keys(c.left)) {
		name := split
		if name == "" {
			name = "no split"
		}
		left = append(left, fmt.Sprintf("%d of %s", c.left[split], name))
	}
	if left != nil {
		s.note("%s: read the split train, %d of its files; left out %s: "+
			"name them in the address, or by a pattern, to read them", arg, c.kept,
			strings.Join(left, ", "))
	}
	if c.others > 0 {
		s.note("%s: read its files of the kind %s, left out %d of other kinds: name them by a pattern to read them",
			arg, c.kind, c.others)
	}
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
	l.splits = splitChoice{active: true, files: map[string]int{}, folders: map[string]int{}, kinds: map[string]int{}}
	if below != "" && l.exists(ctx) {
		return nil
	}
	configs, err := l.set.hubConfigs(ctx, repository)
	if err != nil || len(configs) == 0 {
		return err
	}
	at := slices.IndexFunc(configs, func(c hubConfig) bool { return c.Name == below && below != "" })
	if below == "" {
		at = max(0, slices.IndexFunc(configs, func(c hubConfig) bool { return c.Default }),
			slices.IndexFunc(configs, func(c hubConfig) bool { return c.Name == "default" }))
		if len(configs) > 1 {
			l.splits.notes = append(l.splits.notes, manyConfigs(repository, configs, at))
		}
	}
	if at < 0 {
		return nil
	}
	return l.useConfig(&configs[at], repository)
}

// exists reports whether the folder holds anything.
func (l *remoteListing) exists(ctx context.Context) bool {
	enough := errors.New("one is enough")
	err := l.set.remoteStore().List(ctx, l.walk.root, func(string, remote.Object) error { return enough })
	return !errors.Is(err, fs.ErrNotExist)
}

func manyConfigs(repository string, configs []hubConfig, at int) string {
	names, other := make([]string, len(configs)), ""
	for i, c := range configs {
		if names[i] = c.Name; i != at && other == "" {
			other = c.Name
		}
	}
	const most = 8
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return fmt.Sprintf("%s: read its configuration %s of %d (%s); name another as %s/%s", repository, configs[at].Name,
		len(configs), strings.Join(names, ", "), repository, other)
}

// useConfig reads the files of the split train of a configuration.
func (l *remoteListing) useConfig(c *hubConfig, repository string) error {
	splits := c.patterns()
	patterns := splits[splitTrain]
	if len(splits) > 1 {
		var left []string
		for _, split := range slices.Sorted(maps.Keys(splits)) {
			if patterns == nil {
				patterns = splits[split]
				l.splits.notes = append(l.splits.notes, fmt.Sprintf("%s: there is no split train; read %s",
					repository, split))
			} else if split != splitTrain {
				left = append(left, split)
			}
		}
		if splits[splitTrain] != nil {
			l.splits.notes = append(l.splits.notes,
				fmt.Sprintf("%s: read the split train; left out %s: name their files to read them", repository,
					strings.Join(left, ", ")))
		}
	} else if patterns == nil {
		for _, patterns = range splits {
		}
	}
	if patterns == nil {
		return nil // it says nothing of files
	}
	l.splits.active = false
	w := l.walk
	w.root, w.globs = repository, nil
	for _, pattern := range patterns {
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

// patterns returns the globs of a configuration's files by split.
func (c *hubConfig) patterns() map[string][]string {
	out := map[string][]string{}
	add := func(split string, n *yaml.Node) {
		list := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			list = n.Content
		}
		for _, item := range list {
			if item.Kind == yaml.ScalarNode && item.Value != "" {
				out[split] = append(out[split], path.Join(c.DataDir, item.Value))
			}
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
				add(f.Split, &f.Path)
			}
		}
	}
	if len(out) == 0 && c.DataDir != "" {
		out[""] = []string{path.Join(c.DataDir, "**")}
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
	return slices.DeleteFunc(head.Configs, func(c hubConfig) bool { return len(c.patterns()) == 0 }), nil
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

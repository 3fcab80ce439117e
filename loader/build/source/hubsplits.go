package source

import (
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
	case remote.HubOffline(l.arg), l.exists(ctx):
		return nil // if the cache lacks it, the list says so
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

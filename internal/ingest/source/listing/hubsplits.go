package listing

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/lazy"
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
	word  func() *regexp.Regexp
}{
	{splitTrain, splitWord("train|training")},
	{splitValidation, splitWord("validation|valid|dev|val")},
	{splitTest, splitWord("test|testing|eval|evaluation")},
}

const splitTrain, splitValidation, splitTest = "train", "validation", "test"

func splitWord(words string) func() *regexp.Regexp {
	return lazy.Regexp(`(?:^|[-._ 0-9])(?:` + words + `)(?:[-._ 0-9]|$)`)
}

// splitOf returns the split that a name stands for, "" for none.
func splitOf(name string) string {
	mayBe := false
	for _, part := range [...]string{"train", "val", "test", "dev"} { // each word has one of them
		mayBe = mayBe || strings.Contains(name, part)
	}
	for _, s := range splitWords {
		if mayBe && s.word().MatchString(name) {
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

// splitCounts counts files of data by the split for which their names stand.
type splitCounts map[string]int

// count counts a file by its path. Source code has tests, too, and is no data.
func (c *splitCounts) count(name string) {
	if dataKind(path.Base(name)) != "" {
		if *c == nil {
			*c = splitCounts{}
		}
		(*c)[splitOfPath(name)]++
	}
}

// note adds a note if what a model is tested with is among what it is trained on.
func (c splitCounts) note(l *Lister, which string) {
	if c[splitTrain] > 0 && c[splitValidation]+c[splitTest] > 0 {
		l.Note("%s are read as one, %s; leave out those for testing, in a folder with {exclude}, or give them to {val}",
			which, countSplits(c))
	}
}

// splitChoice chooses among the files of a dataset by their names.
type splitChoice struct {
	active  bool
	ways    [3]splitWay    // in which names may show splits, the first that shows a train is taken
	kinds   map[string]int // files by the extension of their data, of all splits
	decided bool
	tied    string              // another kind that as many files have
	splits  func(string) string // finds the split of a name; nil if names do not show it
	kind    string              // the kind that is read; "" for any
	left    map[string]int      // files left out, by split
	read    map[string]int      // files read, by split, if mixed
	others  int                 // files of other kinds left out
	kept    int
	mixed   bool // no name stands for train, but some for other splits: everything is read
	notes   []string
}

// A splitWay is one way in which names show splits.
type splitWay struct {
	of    func(name string) string
	files map[string]int // how many each split has
	kinds map[string]int // how many files of train have each extension of data
}

func (c *splitChoice) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func newSplitChoice() splitChoice {
	c := splitChoice{active: true, kinds: map[string]int{}}
	for i, of := range []func(string) string{splitOfShard, splitOfPath, splitOfFile} {
		c.ways[i] = splitWay{of, map[string]int{}, map[string]int{}}
	}
	return c
}

// shardName matches the names by which datasets writes splits: data/train-00000-of-00002.parquet.
var shardName = lazy.Regexp(`^data/(\w[\w.]*)-\d{5}-of-\d{5}[^/]*\.[^/]*$`)

// splitOfShard is the split of a file with such a name, "" for any other.
func splitOfShard(name string) string {
	if m := shardName().FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// count counts a file on the way into the list.
func (c *splitChoice) count(name string) {
	base := path.Base(name)
	if !c.active || skip.IsHidden(base) || skip.IsDescribing(base) {
		return
	}
	kind := dataKind(base)
	c.kinds[kind]++
	for i := range c.ways {
		w := &c.ways[i]
		split := w.of(name)
		if w.files[split]++; split == splitTrain {
			w.kinds[kind]++
		}
	}
}

// dataKinds are the extensions of files of data, in the order in which datasets prefers them where equally many
// files have each. The last have no module there.
var dataKinds = []string{".parquet", ".arrow", ".jsonl", ".json", ".csv", ".zip", ".txt", ".tsv", ".tar", ".ndjson",
	".jl", ".ldjson", ".tokens", ".text"}

// dataKind returns the extension in a name that says what its data is, "" for none: .jsonl in a.v2.jsonl.gz and
// in b.jsonl.zip, .zip in c.zip.
func dataKind(name string) (kind string) {
	rest := strings.ToLower(name)
	for i := strings.LastIndexByte(rest, '.'); i >= 0; i = strings.LastIndexByte(rest, '.') {
		if ext := rest[i:]; slices.Contains(dataKinds, ext) {
			if kind = ext; kind != ".zip" {
				return kind
			}
		}
		rest = rest[:i]
	}
	return kind
}

// modules names what datasets reads several kinds with. Other kinds have their own.
var modules = map[string]string{".json": "json", ".jsonl": "json", ".ndjson": "json", ".jl": "json", ".ldjson": "json",
	".csv": "csv", ".tsv": "csv", ".txt": "text", ".text": "text", ".tokens": "text"}

// moduleOf returns a name for the kinds that datasets reads together.
func moduleOf(kind string) string { return cmp.Or(modules[kind], kind) }

func (c *splitChoice) decide() {
	c.decided, c.left, c.read = true, map[string]int{}, map[string]int{}
	kinds := c.kinds
	if i := slices.IndexFunc(c.ways[:], func(w splitWay) bool { return w.files[splitTrain] > 0 }); i >= 0 {
		c.splits, kinds = c.ways[i].of, c.ways[i].kinds
	} else {
		paths := c.ways[1].files
		c.mixed = len(paths) > 1 || paths[""] == 0
	}
	most := 0
	for _, kind := range dataKinds { // the first of equally many
		switch n := kinds[kind]; {
		case n > most:
			c.kind, c.tied, most = kind, "", n
		case n == most && n > 0 && c.tied == "" && moduleOf(kind) != moduleOf(c.kind):
			c.tied = kind
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
	if c.splits != nil {
		if split := c.splits(key); split != splitTrain {
			c.left[split]++
			return true
		}
	}
	if c.kind != "" && moduleOf(dataKind(name)) != moduleOf(c.kind) {
		c.others++
		return true
	}
	c.kept++
	if c.mixed {
		c.read[splitOfPath(key)]++
	}
	return false
}

// addNotes adds notes about what was chosen.
func (c *splitChoice) addNotes(l *Lister, arg string) {
	for _, note := range c.notes {
		l.Note("%s", note)
	}
	if len(c.left) > 0 {
		l.Note("%s: read the split train, %d of its files; left out %s: name them in the address, or by a pattern, to "+
			"read them", arg, c.kept, countSplits(c.left))
	}
	if c.mixed {
		l.Note("%s: no name shows a split train; read everything, %s: name files in the address, or by a pattern, to "+
			"read fewer", arg, countSplits(c.read))
	}
	if c.others > 0 {
		why := ""
		if c.tied != "" {
			why = fmt.Sprintf("; on a tie datasets prefers %s to %s", c.kind, c.tied)
		}
		l.Note("%s: read its files of the kind %s; left out %d of other kinds%s: name them by a pattern to read them",
			arg, c.kind, c.others, why)
	}
}

// countSplits lists how many files each split has.
func countSplits(files map[string]int) string {
	var out []string
	for _, split := range slices.Sorted(maps.Keys(files)) {
		out = append(out, fmt.Sprintf("%d of %s", files[split], cmp.Or(split, "no split")))
	}
	return strings.Join(out, ", ")
}

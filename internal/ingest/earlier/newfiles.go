package earlier

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/shard"
)

// From a folder or a glob, an addition reads the files that the dataset does not have yet.

// place notes where the sources of the dataset are.
func (a *Addition) place(m *shard.Manifest) {
	a.places = map[string]int{}
	for i, s := range m.Sources {
		if s.Files > 0 {
			a.folders = append(a.folders, i)
			continue
		}
		if whole, ok := wholePath(s.URI); ok {
			a.places[whole] = i
		}
		a.places[s.URI] = i
	}
}

// wholePath returns the absolute path of a file of this machine.
func wholePath(uri string) (string, bool) {
	if uri == "-" || strings.Contains(uri, "://") {
		return "", false
	}
	whole, err := filepath.Abs(uri)
	return whole, err == nil
}

// named reports whether the dataset was made from a source of exactly this name.
func (a *Addition) named(uri string) bool {
	return slices.ContainsFunc(a.Manifest.Sources, func(s shard.SourceInfo) bool { return s.URI == uri })
}

// has implements source.Options.Has: it reports whether the dataset was made from a file. Such a file that has
// changed since is noted in changed.
func (a *Addition) has(in source.Stat, checksum func() (string, error)) (bool, error) {
	at, ok := a.places[in.URI]
	if whole, local := wholePath(in.URI); !ok && local {
		at, ok = a.places[whole]
	}
	if !ok {
		return false, a.unlisted(in.URI)
	}
	a.passed = true
	same, err := a.unchanged(at, in, checksum)
	if err == nil && !same {
		a.changed = append(a.changed, in.URI)
	}
	return true, err
}

// unchanged compares a file with what the manifest says about it.
func (a *Addition) unchanged(at int, in source.Stat, checksum func() (string, error)) (bool, error) {
	was := a.Manifest.Sources[at]
	switch {
	case was.Bytes != in.Size, was.ETag != "" && in.ETag != "" && was.ETag != in.ETag:
		return false, nil
	case uris.IsRemote(in.URI), len(a.times) > 0 && a.times[at] != "" && a.times[at] == formatTime(in.ModTime):
		return true, nil
	case was.Checksum == "": // a budget ended the build within it or before it
		return len(a.times) == 0, nil
	}
	now, err := checksum()
	return now == was.Checksum, err
}

// unlisted refuses a file of a folder that the dataset was made from, if the manifest does not name the
// files of that folder.
func (a *Addition) unlisted(uri string) error {
	whole, local := wholePath(uri)
	for _, i := range a.folders {
		s := a.Manifest.Sources[i]
		root, ok := wholePath(strings.TrimRight(s.URI[:prefixBytes(s.URI)], "/"))
		if local && ok && strings.HasPrefix(whole, root+string(filepath.Separator)) ||
			!local && strings.HasPrefix(uri, s.URI[:prefixBytes(s.URI)]) {
			return fault.BadOption("append", nil, "the dataset was made from %d files of %s, which are too "+
				"many for it to list, so that %s may be one of them; name the new files one by one",
				s.Files, s.URI, uri)
		}
	}
	return nil
}

// prefixBytes returns the length of what all files of a folder or a glob begin with.
func prefixBytes(arg string) int {
	if i := strings.IndexAny(arg, "*?[{"); i >= 0 {
		return strings.LastIndexByte(arg[:i], '/') + 1
	}
	return len(arg)
}

// maxChangedListed is how many changed files an error names.
const maxChangedListed = 5

// Explain returns the error for files that have changed since the dataset was made from them, else the error of
// opening the sources.
func (a *Addition) Explain(err error) error {
	if len(a.changed) == 0 {
		return err
	}
	return fault.BadOption("append", nil, "changed since the dataset was made from it: %s; nothing was added; "+
		"build the dataset afresh with {overwrite}, leave it out with {exclude}, "+
		"or name the new files one by one", spelling.First(a.changed, maxChangedListed))
}

// Times returns the times of the sources, of the dataset and of the addition, for run.json.
func (a *Addition) Times(known []source.Stat) Times {
	t := TimesOf(known)
	if len(a.times)+len(t.Times) <= maxTimesListed {
		t.Earlier = a.times
	}
	return t
}

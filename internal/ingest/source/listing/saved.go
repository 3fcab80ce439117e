package listing

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/units"
)

// A folder that datasets' save_to_disk wrote holds Arrow streams, whose order its state.json gives. A
// folder of several splits has one such folder for each, and names them in dataset_dict.json. The
// split train is read, or the only one.

const (
	savedState = "state.json"
	savedInfo  = "dataset_info.json"
	savedDict  = "dataset_dict.json"

	maxStateBytes = 16 << 20
)

// isName reports whether a name is that of a file in a folder, and not elsewhere.
func isName(name string) bool { return name == filepath.Base(name) && name != "." && name != ".." }

func isFile(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// readJSON reads a file of a dataset's folder.
func readJSON(dir, name string, into any) error {
	file := filepath.Join(dir, name)
	refuse := func(err error) error { return cause.Unread(file, err) }
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe waits for somebody to write into it
		return refuse(fault.Of(cause.Unsupported, "it is not a regular file; remove it"))
	}
	if err == nil && info.Size() > maxStateBytes {
		return refuse(fault.Of(cause.TooLarge, "it is longer than %s", units.Size(maxStateBytes)))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return refuse(cause.OfPath(err))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return refuse(fault.Of(cause.Corrupt, "not what save_to_disk writes: %v", err))
	}
	return nil
}

// saved adds the shards of a folder that save_to_disk wrote.
func (l *Lister) saved(dir string) (err error) {
	if isFile(dir, savedDict) {
		if dir, err = l.chooseSplit(dir); err != nil {
			return err
		}
	}
	var state struct {
		Files   []struct{ Filename string } `json:"_data_files"`
		Indices []json.RawMessage           `json:"_indices_data_files"`
	}
	if err := readJSON(dir, savedState, &state); err != nil {
		return err
	}
	if len(state.Indices) > 0 {
		return cause.Unread(dir, fault.Of(cause.Unsupported,
			"its rows are chosen by a file of indices; save it again after flatten_indices()"))
	}
	for _, f := range state.Files {
		if !isName(f.Filename) {
			return cause.Unread(filepath.Join(dir, savedState),
				fault.Of(cause.Corrupt, "it names a file outside the folder: %q", f.Filename))
		}
		name := filepath.Join(dir, f.Filename)
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return cause.Unread(name, fault.Of(cause.Truncated,
				"this shard of the dataset is missing, which %s names; copy the folder again", savedState))
		}
		if err != nil {
			return cause.Unread(name, cause.OfPath(err))
		}
		f := localFile(name, info)
		f.Saved = true
		if _, err := l.Add(f); err != nil {
			return err
		}
	}
	if len(state.Files) == 0 {
		e := cause.Unread(dir, cause.NoDocuments)
		e.Hint = "the dataset has no shards"
		return e
	}
	return nil
}

// chooseSplit returns the folder of the split that is read.
func (l *Lister) chooseSplit(dir string) (string, error) {
	var dict struct {
		Splits []string `json:"splits"`
	}
	if err := readJSON(dir, savedDict, &dict); err != nil {
		return "", err
	}
	split := "train"
	others := slices.DeleteFunc(slices.Clone(dict.Splits), func(name string) bool { return name == split })
	switch {
	case len(dict.Splits) == 1:
		split, others = dict.Splits[0], nil
	case len(others) == len(dict.Splits):
		return "", cause.Unread(dir, fault.Of(cause.Usage,
			"the dataset has the splits %s, and none is called train; name the folder of one",
			strings.Join(dict.Splits, ", ")))
	}
	if !isName(split) {
		return "", cause.Unread(filepath.Join(dir, savedDict),
			fault.Of(cause.Corrupt, "it names a folder outside: %q", split))
	}
	if len(others) > 0 {
		l.Note("%s: read the split %s of the dataset, and not %s; name the folder of another, or give it to {val}", dir,
			split, strings.Join(others, ", "))
	}
	return filepath.Join(dir, split), nil
}

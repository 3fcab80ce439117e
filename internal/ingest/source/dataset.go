package source

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
	datasetState = "state.json"
	datasetInfo  = "dataset_info.json"
	datasetDict  = "dataset_dict.json"

	maxStateBytes = 16 << 20
)

// isDataset reports whether save_to_disk wrote a folder.
func isDataset(dir string) bool {
	return isFile(dir, datasetDict) || isFile(dir, datasetState) && isFile(dir, datasetInfo)
}

func isFile(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// readJSON reads a file of a dataset's folder.
func readJSON(dir, name string, into any) error {
	file := filepath.Join(dir, name)
	refuse := func(err error) error { return unread(file, err) }
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe waits for somebody to write into it
		return refuse(fault.Of(cause.Unsupported, "it is not a regular file; remove it"))
	}
	if err == nil && info.Size() > maxStateBytes {
		return refuse(fault.Of(cause.TooLarge, "it is longer than %s", units.Size(maxStateBytes)))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return refuse(pathCause(err))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return refuse(fault.Of(cause.Corrupt, "not what save_to_disk writes: %v", err))
	}
	return nil
}

// expandDataset adds the shards of a folder that save_to_disk wrote.
func (s *Set) expandDataset(dir string, look []byte) (hasText bool, err error) {
	if isFile(dir, datasetDict) {
		if dir, err = s.chooseSplit(dir); err != nil {
			return false, err
		}
	}
	var state struct {
		Files   []struct{ Filename string } `json:"_data_files"`
		Indices []json.RawMessage           `json:"_indices_data_files"`
	}
	if err := readJSON(dir, datasetState, &state); err != nil {
		return false, err
	}
	if len(state.Indices) > 0 {
		return false, unread(dir, fault.Of(cause.Unsupported,
			"its rows are chosen by a file of indices; save it again after flatten_indices()"))
	}
	o := s.opts
	o.Format = Arrow
	for _, f := range state.Files {
		if f.Filename != filepath.Base(f.Filename) || f.Filename == "." || f.Filename == ".." {
			return false, unread(filepath.Join(dir, datasetState),
				fault.Of(cause.Corrupt, "it names a file outside the folder: %q", f.Filename))
		}
		name := filepath.Join(dir, f.Filename)
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return false, unread(name, fault.Of(cause.Truncated,
				"this shard of the dataset is missing, which %s names; copy the folder again", datasetState))
		}
		if err != nil {
			return false, unread(name, pathCause(err))
		}
		in := fileInput(name, info)
		if s.prunes(name) {
			continue
		}
		text, _, err := in.detect(&o, look)
		if err != nil {
			return false, err
		}
		hasText = hasText || text
		if err := s.append(in); err != nil {
			return false, err
		}
	}
	if len(state.Files) == 0 {
		return false, &InputError{URI: dir, Offset: -1, Err: cause.NoDocuments, Hint: "the dataset has no shards"}
	}
	return hasText, nil
}

// chooseSplit returns the folder of the split that is read.
func (s *Set) chooseSplit(dir string) (string, error) {
	var dict struct {
		Splits []string `json:"splits"`
	}
	if err := readJSON(dir, datasetDict, &dict); err != nil {
		return "", err
	}
	split := "train"
	others := slices.DeleteFunc(slices.Clone(dict.Splits), func(name string) bool { return name == split })
	switch {
	case len(dict.Splits) == 1:
		split, others = dict.Splits[0], nil
	case len(others) == len(dict.Splits):
		return "", unread(dir, fault.Of(cause.Usage,
			"the dataset has the splits %s, and none is called train; name the folder of one",
			strings.Join(dict.Splits, ", ")))
	}
	if split != filepath.Base(split) || split == ".." || split == "." {
		return "", unread(filepath.Join(dir, datasetDict),
			fault.Of(cause.Corrupt, "it names a folder outside: %q", split))
	}
	if len(others) > 0 {
		s.note("%s: read the split %s of the dataset, and not %s; name the folder of another, or give it to {val}",
			dir, split,
			strings.Join(others, ", "))
	}
	return filepath.Join(dir, split), nil
}

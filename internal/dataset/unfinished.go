package dataset

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// Unfinished describes a build that has not finished.
type Unfinished struct {
	Settings json.RawMessage // BuilderOptions.Settings
	Cursor   []byte          // the argument of the last Checkpoint; nil before the first
}

// ReadUnfinished reads the checkpoint of a folder, whatever its options. It takes no lock: the
// build may be running. The error is ErrNotFound if there is no checkpoint.
func ReadUnfinished(fsys shardfile.ReadFS, dir string) (*Unfinished, error) {
	path := shardfile.Join(dir, shardfile.BuildCheckpointName)
	st, err := readHead(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, shardfile.Wrong(path, shard.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	u := &Unfinished{Settings: st.opts.Settings}
	if st.begun {
		u.Cursor = st.cursor
	}
	return u, nil
}

// HasRows reports whether a checkpoint follows the first row of its build. Until then it only claims the folder.
// Without a checkpoint there are none.
func HasRows(fsys shardfile.ReadFS, path string) (bool, error) {
	st, err := readHead(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.begun, err
}

// ReadRun returns run.json of a finished dataset: Provenance.Run as a sealed JSON object. The error
// is ErrNotFound if there is none.
func ReadRun(fsys shardfile.FS, dir string) (json.RawMessage, error) {
	path := shardfile.Join(dir, shardfile.RunName)
	data, err := shardfile.ReadFile(fsys, path, shardfile.MaxRunBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, shardfile.Wrong(path, shard.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	_, err = shardfile.CheckSeal(path, data)
	return data, err
}

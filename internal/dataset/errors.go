package dataset

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/shardfile"
)

// Errors of builds and merges; test for them with errors.Is.
var (
	ErrShardList = errors.New("the list of shards is full")                 // BuilderOptions.MaxShards reached
	ErrFinished  = errors.New("the dataset is already built")               // finished, with equal settings
	ErrForeign   = shardfile.NewError("usage", "folder holds other files")  // not ours to build into
	ErrOrder     = errors.New("rows out of order")                          // (document, part) did not grow
	ErrOtherPart = shardfile.NewError("corrupt", "not a part of this plan") // a part or shard of another build
	ErrNoRows    = errors.New("no example was made")                        // nothing to write a manifest of
)

// SettingsError reports that a folder holds a build with other settings, and names the first one
// that differs (in sorted order, nested settings joined by dots). A setting that is absent on one
// side reads "unset".
type SettingsError struct {
	Dir  string
	Name string
	Have string // in the folder, as JSON
	Want string // asked for, as JSON
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("%s holds a build with %s = %s, not %s", e.Dir, e.Name, e.Have, e.Want)
}

// Kind returns "usage".
func (e *SettingsError) Kind() string { return "usage" }

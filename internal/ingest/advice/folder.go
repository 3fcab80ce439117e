package advice

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/shard"
)

// noFolder is about a folder that cannot be made.
func noFolder(f Facts, err error) (error, bool) {
	if path, ok := errors.AsType[*fs.PathError](err); !ok || path.Op != "mkdir" || !errors.Is(err, fs.ErrNotExist) {
		return err, false
	}
	return fault.BadOption("out", f.Options.Out, "no folder can be made there (%v); name another one", err), true
}

// otherSettings says in words how a build differs from the one in its folder.
func otherSettings(f Facts, err error) (error, bool) {
	other, ok := errors.AsType[*dataset.SettingsError](err)
	switch {
	case !ok:
		return err, false
	case other.Name == "additions" && !f.Options.Append:
		return fault.Of(other,
			"%s has additions since it was built: %s; to add more, give {append}; to build it without "+
				"them, give {overwrite} or choose another {out}", other.Dir, additionNames(other.Have)), true
	case other.Name == "additions":
		return fault.Of(other,
			"%s holds unfinished additions: %s; finish them with the same command as before, or give "+
				"them up with {append} and {overwrite}", other.Dir, additionNames(other.Have)), true
	case other.Name == "sources" && !f.Options.Append:
		err := fault.Of(other,
			"%s holds a build of %s, not of %s; use the same sources, another {out}, or {overwrite} to "+
				"start afresh", other.Dir, sourceNames(other.Have), sourceNames(other.Want))
		if _, unfinished := shard.ReadManifest(f.Options.FS, f.Options.Out); unfinished == nil {
			err = fault.Advise(err, "{append} adds new sources")
		}
		return err, true
	}
	shown := *other
	shown.Have, shown.Want = asTyped.Replace(other.Have), asTyped.Replace(other.Want)
	return fault.Advise(&shown, "use the same settings, another {out}, or {overwrite} to start afresh"), true
}

// asTyped writes characters as people type them. In the JSON of datasets they are escapes.
var asTyped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// additionNames names the sources of the additions in a value of the setting additions.
func additionNames(value string) string {
	var additions []struct {
		Sources []string `json:"sources"`
	}
	if json.Unmarshal([]byte(value), &additions) != nil {
		return "none"
	}
	var all []string
	for _, a := range additions {
		all = append(all, a.Sources...)
	}
	return spelling.First(all, maxSourcesNamed)
}

// sourceNames names the sources in a value of the setting sources.
func sourceNames(value string) string {
	var names []string
	if json.Unmarshal([]byte(value), &names) != nil {
		return "other sources"
	}
	return spelling.First(names, maxSourcesNamed)
}

// maxSourcesNamed is the maximum number of sources that an error names.
const maxSourcesNamed = 5

// lockedFolder is about a folder that another process builds in.
func lockedFolder(f Facts, err error) (error, bool) {
	if _, ok := errors.AsType[*shardfile.LockedError](err); !ok {
		return err, false
	}
	if f.Partition {
		return fault.Advise(err, "that builds this partition: wait for it, or end it, and the same command resumes where it stopped"), true
	}
	return fault.Advise(err, "wait for it, or use another {out}"), true
}

// foreignFolder is about a folder with files of other programs. Overwrite would keep them.
func foreignFolder(f Facts, err error) (error, bool) {
	switch o := f.Options; {
	case !errors.Is(err, dataset.ErrForeign):
		return err, false
	case f.Partition || o.Overwrite || !dataset.HoldsBuild(o.FS, o.Out):
		return fault.Advise(err, "choose another {out}"), true
	}
	return fault.Advise(err, "choose another {out}, or {overwrite} to replace what dsload wrote there"), true
}

// damagedFolder is about a checkpoint or a manifest that cannot be read.
func damagedFolder(f Facts, err error) (error, bool) {
	if _, ok := errors.AsType[*shardfile.FileError](err); !ok || fault.KindOf(err) != fault.Corrupt {
		return err, false
	}
	if f.Options.Append {
		return fault.Advise(err, "{overwrite} starts the addition afresh"), true
	}
	return fault.Advise(err, "{overwrite} starts afresh"), true
}

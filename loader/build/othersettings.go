package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/shard"
)

// explainSettings puts in words that a folder holds a build with other sources or additions.
func (b *build) explainSettings(err error) error {
	var other *shard.SettingsError
	if !errors.As(err, &other) {
		return err
	}
	switch {
	case other.Name == "additions" && b.base == nil:
		return fault.Of(other, "%s has additions since it was built: %s; to add more, give {append}; to build it without "+
			"them, give {overwrite} or choose another {out}", other.Dir, additionNames(other.Have))
	case other.Name == "additions":
		return fault.Of(other, "%s holds unfinished additions: %s; finish them with the same command as before, or give "+
			"them up with {append} and {overwrite}", other.Dir, additionNames(other.Have))
	case other.Name == "sources" && b.base == nil:
		err := fault.Of(other, "%s holds a build of %s, not of %s; use the same sources, another {out}, or {overwrite} to "+
			"start afresh", other.Dir, namedSources(other.Have), namedSources(other.Want))
		if _, unfinished := shard.ReadManifest(b.opts.FS, b.opts.Out); unfinished == nil {
			err = fault.Advise(err, "{append} adds new sources")
		}
		return err
	}
	return err
}

// maxSourcesNamed is how many sources an error names.
const maxSourcesNamed = 5

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
	return listNames(all)
}

// namedSources names the sources in a value of the setting sources.
func namedSources(value string) string {
	var names []string
	if json.Unmarshal([]byte(value), &names) != nil {
		return "other sources"
	}
	return listNames(names)
}

func listNames(names []string) string {
	if more := len(names) - maxSourcesNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxSourcesNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

package source

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/ingest/source/uris"
)

// Folders that are named KEY=VALUE, as Hive writes tables in parts, are columns of the records below them:
// conditions on KEY are decided by the folder alone, whatever the records have, as in pyarrow and DuckDB.
// What no record can meet is not opened.

// noHiveValue is the VALUE of records without one.
const noHiveValue = "__HIVE_DEFAULT_PARTITION__"

// judge returns which conditions the folders of an input decide, a bit each, and whether one of them
// drops it. Of several folders with one KEY the innermost counts.
func (o *Options) judge(name string) (decided uint64, drops bool) {
	if len(o.Conditions) == 0 || strings.IndexByte(name, '=') < 0 {
		return 0, false
	}
	folders, _ := cutLast(filepath.ToSlash(uris.WithoutQuery(name)))
	for folders != "" {
		var folder string
		folders, folder = cutLast(folders)
		key, value, found := strings.Cut(folder, "=")
		if !found || key == "" {
			continue
		}
		key, value = unescaped(key), unescaped(value)
		for i := range o.Conditions {
			c := &o.Conditions[i]
			if c.Field != key || decided&(1<<i) != 0 || c.Folder == nil {
				continue
			}
			decided |= 1 << i
			drops = drops || !c.Folder(value, value == noHiveValue)
		}
	}
	return decided, drops
}

// cutLast cuts the last name off a path.
func cutLast(path string) (before, name string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

func unescaped(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}

// pruned counts the files that conditions leave out by their folders.
type pruned struct {
	files int64
	first string
}

package source

import (
	"net/url"
	"path/filepath"
	"slices"
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

// A schema is what is known of the fields of a set's records for Options.Conditions before they are read: files
// of columns and CSV show theirs.
type schema struct {
	has     []bool   // for each condition: an input has the field
	first   []string // the fields of the first input that shows them
	unknown bool     // an input does not show them
	texts   []Input  // the first input whose records have no fields, if its folders do not decide everything
}

// add takes an input's columns in, nil if they are not known.
func (s *schema) add(o *Options, in *Input) {
	decided, _ := o.judge(in.URI)
	all := decided == 1<<len(o.Conditions)-1
	if in.Format.Kind() == Texts && !all && s.texts == nil {
		s.texts = []Input{*in}
	}
	if s.has == nil {
		s.has = make([]bool, len(o.Conditions))
	}
	for i, c := range o.Conditions {
		s.has[i] = s.has[i] || decided&(1<<i) != 0 ||
			slices.ContainsFunc(c.Names, func(n string) bool { return slices.Contains(in.columns, n) })
	}
	switch {
	case in.columns == nil && !all:
		s.unknown = true
	case s.first == nil:
		s.first = in.columns
	}
}

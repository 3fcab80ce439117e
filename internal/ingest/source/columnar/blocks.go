package columnar

import (
	"slices"
	"strings"
)

// blocks is a list that grows without being copied, so that it never takes twice its size.
type blocks[T any] struct {
	full [][]T
	n    int
}

const blockLen = 256

func (b *blocks[T]) add(v T) {
	if b.n%blockLen == 0 {
		b.full = append(b.full, make([]T, 0, blockLen))
	}
	last := &b.full[len(b.full)-1]
	*last = append(*last, v)
	b.n++
}

func (b *blocks[T]) at(i int) *T { return &b.full[i/blockLen][i%blockLen] }

func (b *blocks[T]) len() int { return b.n }

// A meter counts what the metadata of a file takes in memory. It is asked before anything is kept;
// once that is more than the limit, nothing more is kept and all of it is still counted.
type meter struct {
	held  int64
	limit int64 // 0 for none
}

// take counts n bytes and reports whether they may be kept.
func (m *meter) take(n int64) bool {
	m.held += n
	return !m.over()
}

func (m *meter) over() bool { return m.limit > 0 && m.held > m.limit }

// columnInfo is what messages say about a column at the top.
type columnInfo struct {
	name         string
	isText, list bool
}

// columnList holds the wanted columns, and of the others as many as fit. Columns implements File.
type columnList struct {
	columns []columnInfo
	bytes   int // length of the names that are not wanted
}

// namesBytes bounds the names that are kept for messages, and their list.
const (
	namesBytes  = 64 << 10
	maxNameTold = 4 << 10 // the longest name
)

func (l *columnList) add(c columnInfo, wanted bool) {
	const each = 64
	if !wanted {
		if l.bytes += len(c.name) + each; l.bytes > namesBytes {
			return
		}
	}
	l.columns = append(l.columns, c)
}

func (l *columnList) Columns() (names []string) {
	for _, c := range l.columns {
		names = append(names, c.name)
	}
	return names
}

// missing returns the error that a file has no column of text of a name.
func (l *columnList) missing(name, kind string) *ColumnError {
	e := &ColumnError{Column: name, Kind: kind}
	for _, c := range l.columns {
		switch {
		case c.name == name:
		case c.isText:
			e.Has = append(e.Has, c.name)
		case c.list:
			e.Lists = append(e.Lists, c.name)
		}
	}
	return e
}

// checkColumns checks that no two wanted columns have one name, of which it is not clear which is to be read, and that
// the column of the text, if one is wanted, is there and holds text. other returns what it holds instead.
func checkColumns[C any](l *columnList, wanted []C, name func(C) string, o *Options, other func(C) string) error {
	seen := make(map[string]bool, len(wanted))
	for _, c := range wanted {
		if seen[name(c)] {
			return unreadType("several columns are named %q; give each another name, so that it is clear which to read",
				name(c))
		}
		seen[name(c)] = true
	}
	switch {
	case o.Text == "" && o.AnyOf != nil && !slices.ContainsFunc(o.AnyOf, func(f string) bool { return seen[f] }):
		return l.missing(strings.Join(o.AnyOf, "|"), "")
	case o.Text == "":
		return nil
	case len(wanted) == 0:
		return l.missing(o.Text, "")
	}
	if kind := other(wanted[0]); kind != "" {
		return l.missing(o.Text, kind)
	}
	return nil
}

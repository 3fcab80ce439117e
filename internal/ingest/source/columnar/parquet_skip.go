package columnar

import (
	"errors"
	"io"
)

// Rows that cannot be read are passed over a page at a time where that is possible: the header of a
// page says how many rows it has of a column that is not a list. The other columns then continue at the row
// after the page. Where a header itself is damaged, or a list, the rest of the row group is lost.

// Skip implements Rows.
func (r *parquetRows) Skip() (lost int64, err error) {
	rows := r.rows
	from := min(r.bad, rows)
	to := min(from+1, rows)
	for to < rows {
		again := false
		for _, l := range r.leaves {
			if l.broken {
				if !l.drop() {
					return r.endGroup(from), nil
				}
				again = true
			}
			to = max(to, min(l.begun, rows))
		}
		for _, l := range r.leaves {
			err := l.goTo(to)
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
				return 0, r.where(l, err)
			}
			again = err != nil || again
		}
		if !again {
			r.row = to
			return to - from, nil
		}
	}
	return r.endGroup(from), nil
}

// endGroup gives up the group from a row on.
func (r *parquetRows) endGroup(from int64) (lost int64) {
	rows := r.rows
	r.row, r.ended = rows, true
	return rows - from
}

// drop passes over what is left of the page that the column broke in. It reports false where the
// number of rows in it is not known.
func (l *leafReader) drop() bool {
	l.broken = false
	switch {
	case l.n.rep > 0:
		return false
	case l.damaged.next > 0: // the page was not begun
		l.pos, l.left, l.begun = l.damaged.next, l.left-l.damaged.entries, l.begun+l.damaged.entries
		l.damaged = pageSpan{}
		return true
	case l.left < 0 || l.inPage < 0 || l.pos >= l.end && l.left > 0 || l.begun+l.left > l.ch.values:
		return false
	case l.begun+l.left == l.ch.values: // between two pages: a header is damaged
		return false
	}
	l.begun = l.ch.values - l.left
	l.inPage = 0
	return true
}

// goTo goes to the beginning of a row, so that its first entry can be read.
func (l *leafReader) goTo(row int64) error {
	for {
		err := l.peek()
		if err == io.EOF {
			err, l.broken = corrupt("the column ends before the row group does"), true
		}
		if err != nil {
			return err
		}
		switch {
		case l.rep == 0 && l.begun == row:
			return nil
		case l.begun > row:
			l.broken = true
			return corrupt("a column is at a later row")
		}
		l.take()
	}
}

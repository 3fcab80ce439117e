package source

import (
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
)

// A range of a file of columns begins and ends between two groups of rows. Its marks have the row
// in the file, and as an offset the size of the groups before it.

// maxGroupSums is how many checksums of groups are kept; an input with more groups gets no
// checksum.
const maxGroupSums = 1 << 14

// endGroup notes the checksum of the group that ends.
func (t *tableFramer) endGroup() {
	c := &t.cut
	if c.keep && t.sums.some && len(c.sums) < maxGroupSums {
		t.sums.take()
		c.sums = append(c.sums, checksum.Of(&t.sums.hasher))
	}
	c.base, c.done = t.spanSum(), false
}

// spanSum is the checksum over the groups since the last mark.
func (t *tableFramer) spanSum() checksum.Sum {
	if t.cut.done {
		return checksum.Sum{}
	}
	return t.sumAfter(t.cut.base)
}

// endSpan makes a mark after the current group.
func (t *tableFramer) endSpan() (sum checksum.Sum) {
	sum = t.spanSum()
	t.cut.base, t.cut.done = checksum.Sum{}, true
	return sum
}

// border reports whether the next row begins a group, and returns what the groups before it take in
// the file.
func (t *tableFramer) border() (offset int64, ok bool) {
	if t.group < 0 || t.group+1 >= t.file.Groups() || t.Inside {
		return 0, false
	}
	if c := &t.cut; c.of != t.group+1 {
		c.of, c.end = t.group+1, rowsBefore(t.file, t.group+1)
	}
	if t.Row != t.cut.end {
		return 0, false
	}
	return t.bytesBefore(t.group + 1), true
}

// bytesBefore returns what the groups before one take in the file, with the magic before them.
func (t *tableFramer) bytesBefore(group int) int64 {
	n := int64(len(columnar.ParquetMagic))
	for g := range group {
		n += t.file.Group(g).Bytes
	}
	return n
}

// seekRange goes to the group of rows with which a range begins, and to a position in its first row.
func (t *tableFramer) seekRange(in *Input, from *Mark, at *Position) error {
	row := int64(0)
	for g := range t.file.Groups() {
		if row == from.Row && t.file.Group(g).Skipped {
			t.group, t.Row, t.bytes = g-1, row, at.Offset // advance passes over it
			return nil
		}
		if row == from.Row {
			t.group, t.over, t.Row, t.bytes = g, false, row, at.Offset
			if err := t.rows.Seek(g); err != nil || !at.Inside {
				return tableError(err)
			}
			if _, err := t.advance(); err != nil {
				return err
			}
			t.text, _ = t.rows.Text()
			t.passed, t.Inside = int(min(int64(at.State), int64(len(t.text)))), true
			return nil
		}
		row += t.file.Group(g).Rows
	}
	return &cause.ChangedError{URI: in.URI, What: "groups of rows", Planned: true}
}

// JoinGroupSums returns the checksum of a file of columns, given that of the groups before some, and
// those of these groups. The zero Sum is that of no groups.
func JoinGroupSums(before checksum.Sum, groups []checksum.Sum) checksum.Sum {
	for _, g := range groups {
		before = before.Then(g)
	}
	return before
}

// Package columnar reads files of columns, parquet and Arrow IPC, row by row in bounded memory.
//
//	io.ReaderAt -> OpenParquet, OpenArrow -> File (schema, groups of rows)
//	File.NewRows -> Seek(group) -> Next -> Text or AppendJSON
//
// Only the wanted columns are read: in parquet one page of each at a time, in Arrow a stretch of
// each buffer. A row is the text of one column, or the JSON object of several. Metadata is read in the
// same way: a part of a footer at a time, of which only what the wanted columns need is kept.
//
// The package has readers of its own since the usual libraries do not keep what a build promises:
// one adds ten megabytes to every process before its first instruction, another panics on damaged
// files and allocates what a damaged footer claims.
//
// Ownership: what AppendJSON appends is the caller's. Concurrency: a File is immutable; Rows
// belong to one goroutine.
//
// Invariants:
//
//	I1  Rows hold at most File.MemoryBytes bytes, or give a *SizeError: never what a header merely claims.
//	    What is kept of the metadata is at most Options.MaxMetadata bytes.
//	I2  A damaged file is an error that matches ErrCorrupt, never a panic, and never fewer rows than
//	    its metadata says.
package columnar

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Options says what is wanted of a file.
type Options struct {
	// Text is the column whose text is all that is wanted; "" for a JSON object of Columns.
	Text string
	// Columns are the wanted columns, those that the file has; nil for all.
	Columns []string
	// AnyOf are those of Columns of which the file must have one; nil for none.
	AnyOf []string
	// MaxBytes bounds what the pages of a column may take; 0 for no bound. MemoryBytes says what
	// reading needs.
	MaxBytes int64
	// Planned is what reading may take in all, if an earlier look at the file, or at others like it, has
	// found that; a remote file is then not looked at again. 0 if it is not known.
	Planned int64
	// MaxMetadata bounds what the metadata may take: what is kept of the footer, for the wanted
	// columns, row groups and record batches. A file that needs more is a *SizeError, with what all of
	// reading it takes. 0 for no bound.
	MaxMetadata int64
	// Remote is set where reading at many places is slow: sizes are then taken from the first pages of
	// the first row group alone.
	Remote bool
	// Sparse leaves out the null members of structs in columns of lists: one schema gives them to rows that
	// had no such members.
	Sparse bool
	// Spare is what may be spent on unpacking pages, and on reading large buffers, before their turn. Default: nothing.
	Spare Spare
	// Lenient opens a damaged file as far as it can be read. The rest gives errors of the rows.
	Lenient bool
	// Conditions are those of which a row must meet all to be wanted. A group in which no row can is one
	// that File.Skips, where the file tells.
	Conditions []Condition
}

// A File is an open file of columns.
type File interface {
	// Columns are the names of the columns at the top: the wanted ones, and others as far as the names
	// of all fit namesBytes.
	Columns() []string
	// Groups returns the number of groups of rows.
	Groups() int
	Group(number int) Group
	// TextIsJSON reports whether the column Options.Text holds JSON. Its rows have no Text.
	TextIsJSON() bool
	// MemoryBytes is what reading takes at most, and why.
	MemoryBytes() (n int64, why string)
	// NewRows returns a reader of the rows.
	NewRows() Rows
}

// A Group is a group of rows of a file.
type Group struct {
	Rows    int64
	Bytes   int64 // size of the wanted columns in the file
	Skipped bool  // no row is wanted: it need not be read
}

// Appended is a row as a JSON object after what was there before.
type Appended struct {
	JSON []byte
	Over bool // the object would be longer than the limit, and was left out
	// Omitted is how many members the object lacks by Options.Sparse. Those of a message are not counted: that
	// they have no value says nothing.
	Omitted int
}

// Rows reads the rows of one group after another.
type Rows interface {
	// Seek goes to the first row of a group.
	Seek(group int) error
	// Next goes to the next row: io.EOF at the end of the group.
	Next() error
	// Skip passes over what cannot be read after an error of Seek, Next or AppendJSON that matches
	// ErrCorrupt or ErrUnsupported: Next continues after it. It returns the number of rows that are lost
	// from the one of the error on, 0 where no row is. It returns an error that cannot be passed
	// over.
	Skip() (lost int64, err error)
	// Text is the text of the row, valid until Next. null reports that there is none.
	Text() (text []byte, null bool)
	// AppendJSON appends the row as a JSON object, or leaves it out where that would be longer than limit.
	AppendJSON(dst []byte, limit int) (Appended, error)
	Close()
}

// A ColumnError means that a file has no such column, or that the column does not hold text.
type ColumnError struct {
	Column string
	Kind   string   // what the column is instead of text, "" if there is none
	Has    []string // the columns of text
	Lists  []string // the columns of lists
}

func (e *ColumnError) Error() string {
	if e.Kind != "" {
		return fmt.Sprintf("column %q is %s, not text", e.Column, e.Kind)
	}
	return "no column " + strings.ReplaceAll(strconv.Quote(e.Column), "|", `" or "`)
}

// OpenParquet reads the metadata of a parquet file.
func OpenParquet(at io.ReaderAt, size int64, o Options) (File, error) {
	f := &parquetFile{at: at, size: size, options: o, meter: meter{limit: o.MaxMetadata}}
	from, end, err := findParquetFooter(at, size)
	var head [len(ParquetMagic)]byte
	if err == nil && (o.Lenient || !o.Remote) { // else whoever recognized the file saw its begin
		if err = readAt(at, head[:], 0); err == nil && string(head[:]) != ParquetMagic {
			err = corrupt("it does not begin like a parquet file")
		}
	}
	if err != nil {
		return nil, err
	}
	f.footer = end - from
	if err := f.parse(from, end); err != nil {
		return nil, err
	}
	return f, checkColumns(&f.columnList, f.top, func(n *node) string { return n.name }, &o, (*node).otherThanText)
}

// wants reports whether a column at the top is wanted.
func (o *Options) wants(name []byte) bool {
	if o.Text != "" {
		return o.Text == string(name)
	}
	return o.Columns == nil || slices.Contains(o.Columns, string(name))
}

func (f *parquetFile) TextIsJSON() bool { return f.options.Text != "" && f.top[0].mean == meansJSON }

func (n *node) isList() bool { return n.format == listGroup || n.repetition == repeated }

// otherThanText returns what a column holds that does not hold text, "" for text.
func (n *node) otherThanText() string {
	switch {
	case n.kind == typeByteArray && n.leaf >= 0 && n.repetition != repeated && n.mean != meansDecimal:
		return ""
	case n.isList():
		return "a list"
	case n.leaf < 0:
		return "a group of columns"
	case n.kind == typeBoolean:
		return "a truth value"
	case n.kind == typeFixed:
		return "bytes of a fixed length"
	}
	return "a number, time or null"
}

func (f *parquetFile) Groups() int { return f.groups.len() }

func (f *parquetFile) Group(number int) Group {
	at := f.groups.at(number)
	g := Group{Rows: at.rows, Skipped: at.skip}
	for i := range at.chunks {
		g.Bytes += at.chunks[i].size
	}
	return g
}

const (
	// usualPages is what the pages of a column take in files of the usual writers: a page and a
	// dictionary of 1 MiB each.
	usualPages = 4 << 20
	leafBytes  = 8 << 10 // a reader's own
)

func (f *parquetFile) MemoryBytes() (n int64, why string) {
	n = f.held + footerWindow + codecBytes
	if f.isPlanned() {
		return n + f.plannedPages() + leafBytes*int64(len(f.wanted)), ""
	}
	var largest int64
	for slot, leaf := range f.wanted {
		most, group, _ := f.chunkBytes(slot)
		n += most + leafBytes
		if most > max(usualPages, largest) {
			largest, why = most, fmt.Sprintf("pages and dictionary of column %s in row group %d take %d bytes",
				leaf.path,
				group+1, most)
		}
	}
	switch pages := n - f.held; {
	case f.held > max(usualPages, pages):
		why = fmt.Sprintf("%s takes %d bytes", f.describe(), f.held)
	case pages > 2*usualPages && pages > 2*largest:
		why = fmt.Sprintf("pages and dictionaries of %d columns take %d bytes", len(f.wanted), pages)
	}
	return n, why
}

// isPlanned reports whether what pages may take is known without a look at them.
func (f *parquetFile) isPlanned() bool { return f.options.Remote && f.options.Planned > 0 }

// plannedPages returns what the pages of all columns may take of what was planned.
func (f *parquetFile) plannedPages() int64 {
	n := int64(len(f.wanted))
	return max(n*usualPages, f.options.Planned-f.held-footerWindow-codecBytes-n*leafBytes)
}

// chunkBytes returns what reading a column takes at once, in the row group where that is most, and what its buffers
// take in any, as far as that was found out.
func (f *parquetFile) chunkBytes(slot int) (most int64, group int, sizes pageSizes) {
	l := leafReader{f: f, n: f.wanted[slot]}
	for i := range f.groups.len() {
		if f.groups.at(i).skip {
			continue
		}
		l.seek(i, slot)
		bound := l.ch.bound()
		if bound > usualPages && (i == 0 || !f.options.Remote) {
			if n, err := l.largest(usualPages); err == nil { // reading meets the error again
				bound = n
			}
		}
		if bound > most {
			most, group = bound, i
		}
		if f.options.Remote && i > 0 {
			break
		}
	}
	if f.options.Remote {
		most = max(most, usualPages)
	}
	return most, group, l.most
}

package columnar

import (
	"fmt"
	"io"

	"github.com/dsload/dsload/internal/jsonscan"
)

// Options says what is wanted of a file.
type Options struct {
	// Text is the column whose text is all that is wanted; "" for a JSON object of Columns.
	Text string
	// Columns are the wanted columns, those that the file has; nil for all.
	Columns []string
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
	// Groups returns the number of groups of rows, and Rows that of rows in one of them.
	Groups() int
	Rows(group int) int64
	// Skips reports whether no row of a group is wanted: it need not be read.
	Skips(group int) bool
	// GroupBytes returns what the wanted columns of a group take in the file.
	GroupBytes(group int) int64
	// MemoryBytes is what reading takes at most, and why.
	MemoryBytes() (n int64, why string)
	// NewRows returns a reader of the rows.
	NewRows() Rows
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
	// AppendJSON appends the row as a JSON object. over reports that it would be longer than limit;
	// it is then left out.
	AppendJSON(dst []byte, limit int) (object []byte, over bool, err error)
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
	return fmt.Sprintf("no column %q", e.Column)
}

// OpenParquet reads the metadata of a parquet file.
func OpenParquet(at io.ReaderAt, size int64, o Options) (File, error) {
	f := &parquetFile{at: at, size: size, options: o, meter: meter{limit: o.MaxMetadata}}
	from, end, err := findParquetFooter(at, size)
	if err == nil && (o.Lenient || !o.Remote) { // else whoever recognized the file saw its begin
		err = checkParquetBegin(at)
	}
	if err != nil {
		return nil, err
	}
	f.footer = end - from
	if err := f.parse(from, end); err != nil {
		return nil, err
	}
	return f, f.checkText()
}

// wants reports whether a column at the top is wanted.
func (o *Options) wants(name []byte) bool {
	if o.Text != "" {
		return o.Text == string(name)
	}
	if o.Columns == nil {
		return true
	}
	for _, c := range o.Columns {
		if c == string(name) {
			return true
		}
	}
	return false
}

// checkText checks that the column of the text, if one is wanted, is there and holds text.
func (f *parquetFile) checkText() error {
	name := f.options.Text
	switch {
	case name == "":
		return nil
	case len(f.top) == 0:
		return f.columns.missing(name, "")
	}
	if n := f.top[0]; n.kind != typeByteArray || n.leaf < 0 || n.repetition == repeated || n.mean == meansDecimal {
		return f.columns.missing(name, n.kindName())
	}
	return nil
}

func (n *node) isList() bool { return n.format == listGroup || n.repetition == repeated }

func (n *node) kindName() string {
	switch {
	case n.isList():
		return "a list"
	case n.leaf < 0:
		return "a group of columns"
	case n.kind == typeBoolean:
		return "a truth value"
	case n.kind == typeFixed:
		return "bytes of a fixed length"
	}
	return "a number or time"
}

func (f *parquetFile) Columns() []string    { return f.columns.names() }
func (f *parquetFile) Groups() int          { return f.groups.len() }
func (f *parquetFile) Rows(group int) int64 { return f.groups.at(group).rows }

func (f *parquetFile) GroupBytes(group int) (n int64) {
	chunks := f.groups.at(group).chunks
	for i := range chunks {
		n += chunks[i].size
	}
	return n
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
		most, group := f.chunkBytes(slot)
		n += most + leafBytes
		if most > max(usualPages, largest) {
			largest, why = most, fmt.Sprintf("pages and dictionary of column %s in row group %d take %d bytes", leaf.path,
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

// chunkBytes returns what reading a column takes at once, in the row group where that is most.
func (f *parquetFile) chunkBytes(slot int) (most int64, group int) {
	l := leafReader{f: f, n: f.wanted[slot]}
	for i := range f.groups.len() {
		if f.Skips(i) {
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
	return most, group
}

// parquetRows reads the rows of a parquet file.
type parquetRows struct {
	f      *parquetFile
	leaves []*leafReader // the wanted ones
	codec  codec
	group  int
	pages  pageRoom
	told   int   // the group before which all are expected
	rows   int64 // of the group
	row    int64 // of the group, that is read
	began  bool
	text   *leafReader
	null   bool
	limit  int
	start  int
	over   bool
	values int // of the row

	bad   int64 // where the last error was: rows of the group before it
	ended bool  // the rest of the group cannot be read
}

func (f *parquetFile) NewRows() Rows {
	r := &parquetRows{f: f, group: -1}
	for slot, n := range f.wanted {
		most := f.options.MaxBytes
		switch {
		case f.isPlanned():
			most = f.plannedPages() / int64(len(f.wanted))
		case most == 0:
			most, _ = f.chunkBytes(slot)
		}
		r.pages.limit += most
		r.leaves = append(r.leaves, &leafReader{f: f, n: n, codec: &r.codec, pages: &r.pages, limit: most})
	}
	if f.options.Text != "" {
		r.text = r.leaves[0]
	}
	return r
}

func (r *parquetRows) Close() { r.codec.close() }

func (r *parquetRows) Seek(group int) error {
	r.group, r.row, r.began, r.ended = group, 0, false, false
	r.rows = r.f.groups.at(group).rows
	for slot, l := range r.leaves {
		l.seek(group, slot)
	}
	r.expect(group)
	return nil
}

func (r *parquetRows) where(l *leafReader, err error) error {
	r.bad = max(0, r.row-1)
	return fmt.Errorf("row group %d, column %s, row %d of the group: %w", r.group+1, l.n.path, r.row, err)
}

func (r *parquetRows) Next() error {
	if r.row == r.rows {
		if r.ended {
			return io.EOF
		}
		for _, l := range r.leaves {
			if err := l.finish(); err != nil {
				err = r.where(l, err)
				r.bad = r.row
				return err
			}
		}
		return io.EOF
	}
	r.row++
	for _, l := range r.leaves {
		err := l.peek()
		if err == io.EOF {
			err = corrupt("the column ends before the row group does")
		}
		if err == nil && l.rep != 0 {
			err = corrupt("a row begins within another")
		}
		if err != nil {
			return r.where(l, err)
		}
	}
	if r.text != nil {
		r.null = r.text.def < r.text.n.def
		r.text.take()
	}
	return nil
}

func (r *parquetRows) Text() ([]byte, bool) { return r.text.value, r.null }

func (r *parquetRows) AppendJSON(dst []byte, limit int) ([]byte, bool, error) {
	r.limit, r.start, r.over, r.values = limit, len(dst), false, 0
	dst = append(dst, '{')
	var err error
	for i, n := range r.f.top {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, []byte(n.name)), ':')
		if dst, err = r.value(dst, n); err != nil {
			return dst[:r.start], false, err
		}
	}
	dst = append(dst, '}')
	if r.over || len(dst)-r.start > limit {
		return dst[:r.start], true, nil
	}
	return dst, false, nil
}

// first returns the reader of the first leaf below a node, nil if there is none.
func (r *parquetRows) first(n *node) *leafReader {
	if n.leaf >= 0 {
		return r.leaves[n.leaf]
	}
	for _, c := range n.children {
		if l := r.first(c); l != nil {
			return l
		}
	}
	return nil
}

// skip consumes an entry of every leaf below a node.
func (r *parquetRows) skip(n *node) error {
	if n.leaf >= 0 {
		l := r.leaves[n.leaf]
		if err := r.peek(l); err != nil {
			return err
		}
		l.take()
	}
	for _, c := range n.children {
		if err := r.skip(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *parquetRows) peek(l *leafReader) error {
	if r.values++; r.values > 2*maxRowValues {
		return r.where(l, unsupported("a row has more than %d values", maxRowValues))
	}
	err := l.peek()
	if err == io.EOF {
		err = corrupt("the column ends within a row")
	}
	if err != nil {
		return r.where(l, err)
	}
	return nil
}

// value appends what a node holds in the row: a list where it repeats.
func (r *parquetRows) value(dst []byte, n *node) ([]byte, error) {
	if n.repetition == repeated {
		return r.list(dst, n, n, true)
	}
	l := r.first(n)
	if l == nil {
		return append(dst, "{}"...), nil
	}
	if err := r.peek(l); err != nil {
		return dst, err
	}
	if l.def < n.def {
		return append(dst, "null"...), r.skip(n)
	}
	return r.body(dst, n)
}

// body appends what a node holds, which is there.
func (r *parquetRows) body(dst []byte, n *node) ([]byte, error) {
	if n.leaf >= 0 {
		l := r.leaves[n.leaf]
		if err := r.peek(l); err != nil {
			return dst, err
		}
		if l.def < n.def {
			return dst, r.where(l, corrupt("a value is missing where one must be"))
		}
		if dst = n.appendJSON(dst, l.value); len(dst)-r.start > r.limit {
			dst, r.over = dst[:r.start], true
		}
		l.take()
		return dst, nil
	}
	if n.format != plainGroup && len(n.children) == 1 && n.children[0].repetition == repeated {
		c := n.children[0]
		switch {
		case n.format == mapGroup && len(c.children) == 2:
			return r.list(dst, c, c, true)
		case c.leaf < 0 && len(c.children) == 1 && c.name != "array" && c.name != n.name+"_tuple":
			return r.list(dst, c, c.children[0], false)
		}
		return r.list(dst, c, c, true)
	}
	dst = append(dst, '{')
	var err error
	for i, c := range n.children {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, []byte(c.name)), ':')
		if dst, err = r.value(dst, c); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// list appends the elements of a node that repeats: itself, or its only child.
func (r *parquetRows) list(dst []byte, n, element *node, whole bool) ([]byte, error) {
	l := r.first(n)
	if l == nil {
		return append(dst, "[]"...), nil
	}
	if err := r.peek(l); err != nil {
		return dst, err
	}
	if l.def < n.def {
		return append(dst, "[]"...), r.skip(n)
	}
	dst = append(dst, '[')
	for i := 0; ; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if whole {
			dst, err = r.body(dst, element)
		} else {
			dst, err = r.value(dst, element)
		}
		if err != nil {
			return dst, err
		}
		if err := l.peek(); err == io.EOF {
			break
		} else if err != nil {
			return dst, r.where(l, err)
		}
		if l.rep > n.rep {
			return dst, r.where(l, corrupt("a value repeats at another level than its list"))
		}
		if l.rep < n.rep {
			break
		}
	}
	return append(dst, ']'), nil
}

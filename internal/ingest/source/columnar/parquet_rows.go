package columnar

import (
	"fmt"
	"io"
	"runtime"
)

// parquetRows reads the rows of a parquet file.
type parquetRows struct {
	f         *parquetFile
	leaves    []*leafReader // the wanted ones
	codec     codec
	codecs    chan *codec // of those who look ahead
	group     int
	pages     pageRoom
	announced int   // the group before which all are expected
	rows      int64 // in the group
	row       int64 // the one that is read
	text      *leafReader
	null      bool
	object

	bad   int64 // where the last error was: rows of the group before it
	ended bool  // the rest of the group cannot be read
}

// shared returns a file for several goroutines.
func shared(at io.ReaderAt) io.ReaderAt {
	if one, ok := at.(interface{ Shared() io.ReaderAt }); ok {
		return one.Shared()
	}
	return at
}

func (f *parquetFile) NewRows() Rows {
	r := &parquetRows{f: f, group: -1}
	spare := f.options.Spare
	if spare.Bytes -= int64(spare.Workers) * codecBytes; spare.Bytes > 0 && !f.options.Remote && len(f.wanted) > 0 {
		r.codecs = make(chan *codec, spare.Workers)
		for range spare.Workers {
			r.codecs <- new(codec)
		}
	}
	for slot, n := range f.wanted {
		l := &leafReader{f: f, n: n, codec: &r.codec, pages: &r.pages, limit: f.options.MaxBytes}
		switch {
		case f.isPlanned():
			l.limit = f.plannedPages() / int64(len(f.wanted))
		case l.limit == 0:
			l.limit, _, l.most = f.chunkBytes(slot)
		}
		if r.codecs != nil {
			l.ahead = &lookahead{at: shared(f.at), codecs: r.codecs, bytes: spare.Bytes / int64(len(f.wanted))}
		}
		r.pages.limit += l.limit
		r.leaves = append(r.leaves, l)
	}
	if f.options.Text != "" && !f.TextIsJSON() {
		r.text = r.leaves[0]
	}
	return r
}

func (r *parquetRows) Close() {
	for _, l := range r.leaves {
		l.ahead.take(&packedPage{}) // waits for all
	}
	for range cap(r.codecs) {
		(<-r.codecs).close()
	}
	r.codecs = nil
	r.codec.close()
	if r.leaves, r.text = nil, nil; r.pages.held > usualPages {
		runtime.GC() // the next file's pages are as large
	}
}

func (r *parquetRows) Seek(group int) error {
	r.group, r.row, r.ended = group, 0, false
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
			err := l.peek()
			if err == nil {
				err = corrupt("the column has more values than its row group has rows")
			}
			if err != io.EOF {
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

func (r *parquetRows) AppendJSON(dst []byte, limit int) (Appended, error) {
	return r.object.append(dst, limit, len(r.f.top), func(dst []byte, i int) ([]byte, error) {
		return r.value(beginMember(dst, r.f.top[i].name), r.f.top[i])
	})
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
		return r.where(l, tooManyValues())
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
		dst = r.trim(n.appendJSON(dst, l.value))
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
	for _, c := range n.children {
		before := len(dst)
		dst = beginMember(dst, c.name)
		at := len(dst)
		if dst, err = r.value(dst, c); err != nil {
			return dst, err
		}
		dst = r.endMember(dst, before, at, n.sparse)
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

// A Span is a part of a file, from one offset to another.
type Span = [2]int64

// An Expecter is a file that is told what of it will be read, so that it can ask for that in a few
// requests.
type Expecter interface {
	// Expect says that spans, in the order of the file, will be read from their beginnings on: one after
	// another, or in turns. It replaces what was expected before.
	Expect(spans []Span, inTurns bool)
}

// announce passes spans to a file that is an Expecter.
func (f *parquetFile) announce(spans []Span, inTurns bool) {
	if e, ok := f.at.(Expecter); ok {
		e.Expect(spans, inTurns)
	}
}

// expectBytes is how far ahead the groups of a single column are announced.
const expectBytes = 64 << 20

// expect tells the file which chunks are read from a group on: several columns in turns, one at a time
// through the groups.
func (r *parquetRows) expect(group int) {
	if !r.f.options.Remote {
		return
	}
	var spans []Span
	if len(r.leaves) != 1 {
		for _, ch := range r.f.groups.at(group).chunks {
			spans = append(spans, Span{ch.offset, ch.offset + ch.size})
		}
		r.f.announce(spans, true)
		return
	}
	if group >= r.announced || group == 0 {
		r.announced = group
		for n := int64(0); r.announced < r.f.Groups() && n < expectBytes; r.announced++ {
			if ch := r.f.groups.at(r.announced).chunks[0]; !r.f.groups.at(r.announced).skip {
				spans = append(spans, Span{ch.offset, ch.offset + ch.size})
				n += ch.size
			}
		}
		r.f.announce(spans, false)
	}
}

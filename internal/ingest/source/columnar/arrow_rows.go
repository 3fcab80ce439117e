package columnar

import (
	"fmt"
	"io"

	"github.com/dsload/dsload/internal/flatbuf"
)

// arrowRows reads the rows of an Arrow file, each column through the streams of its buffers.
type arrowRows struct {
	f     *arrowFile
	group int
	rows  int64 // in the group
	row   int64
	top   []*arrowReader

	text  *arrowReader
	value []byte
	null  bool
	object
	meta flatbuf.Buffer // describes the record batch
}

// An arrowReader reads the values of a field.
type arrowReader struct {
	a        *arrowField
	streams  [3]stream // validity, values or offsets, bytes
	children []*arrowReader

	length int64 // values that are left
	nulls  bool  // there is a validity buffer
	bits   [2]bitReader
	last   int64 // offset of the next value
	begun  bool

	dictionary *arrowDictionary // nil where the column has none
	data       viewData         // the buffers of a column of views
	view       arrowView
}

func newArrowReader(a *arrowField) *arrowReader {
	r := &arrowReader{a: a}
	if a.dictionary != nil {
		r.dictionary = &arrowDictionary{of: a.dictionary, reader: newArrowReader(a.dictionary.values)}
		return r
	}
	for _, c := range a.children {
		r.children = append(r.children, newArrowReader(c))
	}
	return r
}

func (f *arrowFile) NewRows() Rows {
	r := &arrowRows{f: f, group: -1}
	for _, a := range f.top {
		r.top = append(r.top, newArrowReader(a))
	}
	if f.options.Text != "" && !f.TextIsJSON() {
		r.text = r.top[0]
	}
	return r
}

func (r *arrowRows) Close() {
	for _, t := range r.top {
		t.close()
	}
}

func (r *arrowReader) close() {
	for i := range r.streams {
		r.streams[i].close()
	}
	r.data.close()
	if r.dictionary != nil {
		r.dictionary.reader.close()
	}
	for _, c := range r.children {
		c.close()
	}
}

func (r *arrowRows) Seek(group int) error {
	r.group, r.row = group, 0
	b := r.f.batches.at(group)
	r.rows = b.rows
	if b.broken {
		return r.f.broken[group]
	}
	h, err := r.f.header(b, &r.meta)
	if err != nil {
		return r.where(nil, err)
	}
	for _, t := range r.top {
		if err := t.open(r.f, b, &h); err != nil {
			return r.where(t, err)
		}
		if t.length != b.rows {
			return r.where(t, corrupt("it has %d values, the batch %d rows", t.length, b.rows))
		}
	}
	if r.meta.Err != nil {
		return r.where(nil, r.meta.Err)
	}
	return nil
}

// Skip implements Rows: the rest of a record batch is lost.
func (r *arrowRows) Skip() (lost int64, err error) {
	b := r.f.batches.at(r.group)
	lost = b.rows - max(0, r.row-1)
	if b.rows/64 > b.bodySize+(1<<10) {
		lost = 0 // it claims more rows than it can have
	}
	r.row = b.rows
	return lost, nil
}

func (r *arrowRows) where(t *arrowReader, err error) error {
	column := ""
	if t != nil {
		column = ", column " + t.a.name
	}
	return fmt.Errorf("record batch %d%s, row %d of the batch: %w", r.group+1, column, r.row, err)
}

func (r *arrowReader) open(f *arrowFile, b *batch, h *batchHeader) error {
	var nulls int64
	r.length, nulls = h.node(r.a.node)
	if r.length < 0 || nulls < 0 || nulls > r.length {
		return corrupt("a column has an impossible length")
	}
	r.nulls, r.begun, r.last = nulls > 0, false, 0
	r.bits = [2]bitReader{}
	for i := range r.a.buffers {
		if i == 0 && !r.nulls {
			continue
		}
		if err := r.streams[i].open(f, b, h.bufferOf(r.a, i), h.compression); err != nil {
			return err
		}
	}
	if r.dictionary != nil {
		return r.dictionary.load(f, int(b.dicts))
	}
	if r.a.isView() {
		first := r.a.buffer + h.variadic(0, r.a.views) + 2
		if r.data.most == 0 {
			r.data.most = f.viewBytes[r.a]
		}
		return r.data.open(f, b, h, first, h.variadic(r.a.views, 1))
	}
	for _, c := range r.children {
		if err := c.open(f, b, h); err != nil {
			return err
		}
	}
	return nil
}

func (r *arrowRows) Next() error {
	if r.row == r.rows {
		return io.EOF
	}
	r.row++
	if r.text == nil {
		return nil
	}
	valid, text, err := r.text.next()
	if err != nil {
		return r.where(r.text, err)
	}
	if r.value, r.null = text, !valid; r.null {
		r.value = nil
	}
	return nil
}

func (r *arrowRows) Text() ([]byte, bool) { return r.value, r.null }

func (r *arrowRows) AppendJSON(dst []byte, limit int) (Appended, error) {
	return r.object.append(dst, limit, len(r.top), func(dst []byte, i int) (_ []byte, err error) {
		t := r.top[i]
		if dst, err = t.appendJSON(beginMember(dst, t.a.name), &r.object); err != nil {
			err = r.where(t, err)
		}
		return dst, err
	})
}

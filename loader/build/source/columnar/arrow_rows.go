package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
)

// arrowRows reads the rows of an Arrow file, each column through the streams of its buffers.
type arrowRows struct {
	f     *arrowFile
	group int
	row   int64
	top   []*arrowReader

	text  *arrowReader
	value []byte
	null  bool
	limit int
	start int
	over  bool

	values int // of the row
}

// maxRowValues bounds the values of a row: nulls and empty lists take almost no room in a file.
const maxRowValues = 1 << 24

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
	data       viewData         // of a column of views
	view       arrowView
}

// A bitReader reads bits from a stream.
type bitReader struct {
	b byte
	n int
}

func (r *bitReader) next(s *stream) (bool, error) {
	if r.n == 0 {
		b, err := s.take(1)
		if err != nil {
			return false, err
		}
		r.b, r.n = b[0], 8
	}
	bit := r.b&1 != 0
	r.b, r.n = r.b>>1, r.n-1
	return bit, nil
}

func newArrowReader(a *arrowField) *arrowReader {
	r := &arrowReader{a: a}
	if a.dictionary != nil {
		r.dictionary = newArrowDictionary(a)
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
	if f.options.Text != "" {
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

// release frees what the batch took that was read.
func (r *arrowReader) release() { r.data.release() }

// A batchHeader is the metadata of a record batch.
type batchHeader struct {
	t           table
	nodes, bufs int // where they begin in t.b
	nNodes      int
	nBufs       int
	compression int
	views       []int // buffers of the columns of views before each, and of all
}

func (f *arrowFile) header(b *batch) (h batchHeader, err error) {
	data := make([]byte, b.metaSize)
	if err := readAt(f.at, data, b.meta); err != nil {
		return h, err
	}
	t, ok := rootTable(data).table(2)
	if !ok {
		return h, corrupt("a record batch has no header")
	}
	return batchHeaderOf(t, f.nodes, f.buffers, f.views)
}

// batchHeaderOf reads the metadata of a batch that has at least the given numbers of nodes, buffers
// and columns of views.
func batchHeaderOf(t table, nodes, buffers, views int) (h batchHeader, err error) {
	h.t = t
	h.nodes, h.nNodes = t.vector(1, 16)
	h.bufs, h.nBufs = t.vector(2, 16)
	h.compression = compressionNone
	if c, ok := t.table(3); ok {
		h.compression = int(int8(c.byte(0, 0)))
	}
	at, n := t.vector(4, 8)
	h.views = make([]int, 1, n+1)
	for i := range n {
		count := i64(t.b, at+8*i)
		if count < 0 || count > int64(h.nBufs-h.views[i]) {
			return h, corrupt("a record batch has fewer buffers than it says")
		}
		h.views = append(h.views, h.views[i]+int(count))
	}
	if h.nNodes < nodes || h.nBufs < buffers+h.views[n] || n < views {
		return h, corrupt("a record batch has fewer columns than the schema")
	}
	return h, nil
}

// variadic returns the number of text buffers of n columns of views, beginning with the column
// first.
func (h *batchHeader) variadic(first, n int) int {
	last := min(first+n, len(h.views)-1)
	return h.views[max(first, last)] - h.views[first]
}

func (h *batchHeader) node(i int) (length, nulls int64) {
	return i64(h.t.b, h.nodes+16*i), i64(h.t.b, h.nodes+16*i+8)
}

func (h *batchHeader) buffer(i int) buffer {
	return buffer{i64(h.t.b, h.bufs+16*i), i64(h.t.b, h.bufs+16*i+8)}
}

// lz4Garbage is the garbage that the decoder of linked lz4 blocks leaves between two collections:
// it allocates a new window for each block.
const lz4Garbage = 6 << 20

// measure finds out what the decompressors take in the batch that takes most.
func (f *arrowFile) measure() error {
	var streams int64
	var count func(a *arrowField)
	count = func(a *arrowField) {
		if streams += 3; a.dictionary != nil || a.isView() {
			streams += 5
		}
		for _, c := range a.children {
			count(c)
		}
	}
	for _, a := range f.top {
		count(a)
	}
	for i := range f.batches {
		if f.options.Remote && i > 0 {
			break
		}
		h, err := f.header(&f.batches[i])
		if errors.Is(err, ErrCorrupt) && f.options.Lenient {
			continue // reported when it is read
		}
		if err != nil {
			return err
		}
		if h.compression == compressionNone {
			break // as all others of the file
		}
		var sum int64
		var add func(a *arrowField) error
		add = func(a *arrowField) error {
			for j := range a.buffers() {
				n, err := f.streamWindow(&f.batches[i], h.bufferOf(a, j), h.compression)
				if err != nil {
					return err
				}
				sum += n
			}
			if a.isView() && a.dictionary == nil {
				n, err := f.viewWindow(a, &f.batches[i], &h)
				if err != nil {
					return err
				}
				sum += n
			}
			for _, c := range a.children {
				if err := add(c); err != nil {
					return err
				}
			}
			return nil
		}
		for _, a := range f.top {
			if err := add(a); err != nil {
				return err
			}
		}
		if h.compression == compressionLZ4 {
			sum += lz4Garbage
		}
		f.window = max(f.window, sum)
	}
	f.window += streams * streamBytes
	for _, n := range f.viewBytes {
		f.held += n
	}
	f.held += f.measureDictionaries()
	return nil
}

// bufferOf returns a buffer of a column.
func (h *batchHeader) bufferOf(a *arrowField, j int) buffer {
	return h.buffer(a.buffer + h.variadic(0, a.views) + j)
}

// buffers returns how many buffers a column has, without the text buffers of views.
func (a *arrowField) buffers() int {
	if a.dictionary != nil {
		return 2
	}
	switch a.kind {
	case arrowNull:
		return 0
	case arrowStruct, arrowFixedList:
		return 1
	case arrowBinary, arrowUtf8, arrowLargeBinary, arrowLargeUtf8:
		return 3
	}
	return 2
}

func (r *arrowRows) Seek(group int) error {
	r.group, r.row = group, 0
	b := &r.f.batches[group]
	if b.err != nil {
		return b.err
	}
	h, err := r.f.header(b)
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
	return nil
}

// Skip implements Rows: the rest of a record batch is lost.
func (r *arrowRows) Skip() (lost int64, err error) {
	b := &r.f.batches[r.group]
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
	for i := range r.a.buffers() {
		if i == 0 && !r.nulls {
			continue
		}
		if err := r.streams[i].open(f.at, b.body, b.bodySize, h.bufferOf(r.a, i), h.compression, f.window); err != nil {
			return err
		}
	}
	if r.dictionary != nil {
		return r.dictionary.load(f, b.dicts)
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
	if r.row == r.f.batches[r.group].rows {
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

func (r *arrowRows) AppendJSON(dst []byte, limit int) ([]byte, bool, error) {
	r.limit, r.start, r.over, r.values = limit, len(dst), false, 0
	dst = append(dst, '{')
	var err error
	for i, t := range r.top {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, []byte(t.a.name)), ':')
		if dst, err = t.appendJSON(dst, r); err != nil {
			return dst[:r.start], false, r.where(t, err)
		}
	}
	dst = append(dst, '}')
	if r.over || len(dst)-r.start > limit {
		return dst[:r.start], true, nil
	}
	return dst, false, nil
}

// valid goes to the next value and reports whether it is there, not null.
func (r *arrowReader) valid() (bool, error) {
	if r.length == 0 {
		return false, corrupt("a column has fewer values than there are rows")
	}
	r.length--
	if r.a.kind == arrowNull {
		return false, nil
	}
	if !r.nulls {
		return true, nil
	}
	return r.bits[0].next(&r.streams[0])
}

// extent returns how many bytes or elements the next value has.
func (r *arrowReader) extent() (int64, error) {
	if !r.begun {
		first, err := r.offset()
		if err != nil {
			return 0, err
		}
		r.begun, r.last = true, first
		if err := r.skipFirst(first); err != nil {
			return 0, err
		}
	}
	end, err := r.offset()
	if err != nil {
		return 0, err
	}
	n := end - r.last
	if n < 0 {
		return 0, corrupt("a value ends before it begins")
	}
	r.last = end
	return n, nil
}

// skipFirst passes over what lies before the first value.
func (r *arrowReader) skipFirst(n int64) error {
	if n < 0 {
		return corrupt("a value begins before its buffer")
	}
	if len(r.children) == 0 {
		return r.streams[2].skip(n)
	}
	var none arrowRows
	for range n {
		if _, err := r.children[0].appendJSON(nil, &none); err != nil {
			return err
		}
	}
	return nil
}

func (r *arrowReader) offset() (int64, error) {
	size := int64(4)
	switch r.a.kind {
	case arrowLargeBinary, arrowLargeUtf8, arrowLargeList:
		size = 8
	}
	b, err := r.streams[1].take(size)
	if err != nil {
		return 0, err
	}
	if size == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// maxValueBytes bounds a value, which is held as a whole.
const maxValueBytes = 8 << 20

// bytes returns the n bytes of a value. A value longer than maxValueBytes is a *SizeError.
func (r *arrowReader) bytes(n int64) ([]byte, error) {
	if n > r.streams[2].left {
		return nil, corrupt("a value is longer than its buffer")
	}
	if n > maxValueBytes {
		return nil, &SizeError{"a value", n}
	}
	return r.streams[2].take(n)
}

// appendJSON appends the next value.
func (r *arrowReader) appendJSON(dst []byte, rows *arrowRows) ([]byte, error) {
	if r.dictionary != nil || r.a.isView() {
		return r.appendNext(dst, rows)
	}
	valid, err := r.valid()
	if err != nil {
		return dst, err
	}
	if rows.values++; rows.values > maxRowValues {
		return dst, unsupported("a row has more than %d values", maxRowValues)
	}
	if len(dst)-rows.start > rows.limit {
		dst, rows.over = dst[:rows.start], true
	}
	at := len(dst)
	switch a := r.a; a.kind {
	case arrowNull:
	case arrowBinary, arrowUtf8, arrowLargeBinary, arrowLargeUtf8:
		var n int64
		var b []byte
		if n, err = r.extent(); err == nil {
			b, err = r.bytes(n)
		}
		dst = appendString(dst, b)
	case arrowList, arrowLargeList, arrowMap, arrowFixedList:
		n := int64(a.width)
		if a.kind != arrowFixedList {
			n, err = r.extent()
		}
		dst = append(dst, '[')
		for i := int64(0); i < n && err == nil; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst, err = r.children[0].appendJSON(dst, rows)
		}
		dst = append(dst, ']')
	case arrowStruct:
		dst = append(dst, '{')
		for i, c := range r.children {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, []byte(c.a.name)), ':')
			if dst, err = c.appendJSON(dst, rows); err != nil {
				break
			}
		}
		dst = append(dst, '}')
	case arrowBool:
		var b bool
		b, err = r.bits[1].next(&r.streams[1])
		dst = strconv.AppendBool(dst, b)
	default:
		var b []byte
		if b, err = r.streams[1].take(int64(a.width)); err == nil {
			dst = a.appendFixed(dst, b)
		}
	}
	if err != nil {
		return dst, err
	}
	if !valid {
		dst = append(dst[:min(at, len(dst))], "null"...)
	}
	return dst, nil
}

// appendNext appends the next value of a column of views, or by a dictionary.
func (r *arrowReader) appendNext(dst []byte, rows *arrowRows) ([]byte, error) {
	if rows.values++; rows.values > maxRowValues {
		return dst, unsupported("a row has more than %d values", maxRowValues)
	}
	valid, b, err := r.next()
	switch {
	case err != nil:
		return dst, err
	case !valid:
		dst = append(dst, "null"...)
	case r.a.isText():
		dst = appendString(dst, b)
	default:
		dst = append(dst, b...)
	}
	if len(dst)-rows.start > rows.limit {
		dst, rows.over = dst[:rows.start], true
	}
	return dst, nil
}

// perSecond returns how many units of time a second has.
func (a *arrowField) perSecond() int64 { return []int64{1, 1e3, 1e6, 1e9}[min(max(0, a.unit), 3)] }

func (a *arrowField) appendFixed(dst, b []byte) []byte {
	var v uint64
	for i := range min(len(b), 8) {
		v |= uint64(b[i]) << (8 * i)
	}
	shift := uint(64 - 8*min(len(b), 8))
	signed := int64(v<<shift) >> shift
	switch a.kind {
	case arrowInt:
		if !a.signed {
			return strconv.AppendUint(dst, v, 10)
		}
	case arrowFloat:
		switch a.width {
		case 2:
			return appendFloat(dst, halfFloat(uint16(v)), 32)
		case 4:
			return appendFloat(dst, float64(math.Float32frombits(uint32(v))), 32)
		}
		return appendFloat(dst, math.Float64frombits(v), 64)
	case arrowDate:
		if a.unit == 0 {
			return appendDate(dst, signed)
		}
		return appendTime(dst, signed, 1e3)
	case arrowTime:
		return appendClock(dst, signed, a.perSecond())
	case arrowTimestamp:
		return appendTime(dst, signed, a.perSecond())
	case arrowDecimal:
		return appendDecimal(dst, littleEndian(b), a.scale)
	case arrowFixedBinary:
		return appendString(dst, b)
	}
	return strconv.AppendInt(dst, signed, 10)
}

// littleEndian returns the number in two's complement, the lowest byte first.
func littleEndian(b []byte) *big.Int {
	turned := make([]byte, len(b))
	for i := range b {
		turned[len(b)-1-i] = b[i]
	}
	return bigEndian(turned)
}

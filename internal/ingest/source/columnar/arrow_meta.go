package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dsload/dsload/internal/flatbuf"
)

// A batch is a record batch in the file. There may be very many.
type batch struct {
	meta     int64 // where its message's metadata begins
	bodySize int64
	rows     int64
	metaSize int32
	toBody   int32 // bytes from meta to the body
	dicts    int32 // messages of dictionaries before it
	broken   bool  // it cannot be read; its rows are then not known, and failures says why
}

// batchBytes is what a batch, or a message of a dictionary, takes in its list.
const (
	batchBytes = 48
	dictBytes  = 72
)

func (f *arrowFile) readAt(p []byte, at int64) error { return readAt(f.at, p, at) }

func (b *batch) body() int64 { return b.meta + int64(b.toBody) }

type arrowFile struct {
	meter
	columnList
	at      io.ReaderAt
	size    int64
	options Options
	isOpen  bool          // its schema was read
	count   int           // number of fields
	top     []*arrowField // the wanted columns
	batches blocks[batch]
	rows    int64 // in all batches
	number  int   // batches, also those that are not kept
	broken  map[int]error
	nodes   int // in a record batch, as are buffers
	buffers int
	views   int            // columns of views
	footer  int64          // its length, or that of the schema's message
	last    int64          // where the last message ends that the footer names
	meta    flatbuf.Buffer // describes the message that is looked at while the file is opened
	window  int64          // what decompressors of all wanted buffers take together

	encoded      []*arrowField         // wanted columns whose values are in dictionaries
	dictionaries blocks[dictBatch]     // what these refer to
	viewBytes    map[*arrowField]int64 // what the compressed buffers of a column of views take at most
	values       int64                 // bytes that dictionaries, and compressed buffers of views, take
	streams      int64                 // how many read the wanted columns at most
}

const (
	// ArrowMagic begins an Arrow file.
	ArrowMagic    = "ARROW1\x00\x00"
	maxMessage    = 64 << 20
	messageSchema = 1
	messageDict   = 2
	messageBatch  = 3
)

// IsArrowStream reports whether an Arrow IPC stream begins here: its first message is a schema.
func IsArrowStream(head []byte) bool {
	from := 0
	switch {
	case len(head) < 32:
		return false
	case binary.LittleEndian.Uint32(head) == 0xffffffff:
		from = 8
	case head[3] != 0:
		return false
	default: // the form of before 2019 has no mark
		from = 4
	}
	n := binary.LittleEndian.Uint32(head[from-4:])
	if n < 16 || n > maxMessage || n%8 != 0 {
		return false
	}
	m := flatbuf.Of(head[from:]).Root()
	return m.Byte(1, 0) == messageSchema && m.Short(0, 0) >= 2 && m.Short(0, 0) <= 8
}

// OpenArrow reads the metadata of an Arrow IPC file or stream.
func OpenArrow(at io.ReaderAt, size int64, o Options) (File, error) {
	f := newArrowFile(at, size, o)
	head := make([]byte, min(size, 8))
	if err := readAt(at, head, 0); err != nil {
		return nil, err
	}
	isFile := string(head) == ArrowMagic
	var err error
	if isFile {
		err = f.readFooter()
	} else {
		err = f.readWholeStream()
	}
	if err != nil && o.Lenient {
		err = f.salvage(isFile, err)
	}
	if err != nil {
		return nil, err
	}
	if f.over() {
		return nil, f.tooLarge()
	}
	if err := checkColumns(&f.columnList, f.top, func(a *arrowField) string { return a.name }, &o,
		func(a *arrowField) string {
			if a.isText() {
				return ""
			}
			return "of another type"
		}); err != nil {
		return nil, err
	}
	for _, field := range f.top {
		if err := field.check(field.name); err != nil {
			return nil, err
		}
	}
	if err := f.measure(); err != nil {
		return nil, err
	}
	f.meta = flatbuf.Buffer{}
	return f, nil
}

func newArrowFile(at io.ReaderAt, size int64, o Options) *arrowFile {
	return &arrowFile{meter: meter{limit: o.MaxMetadata}, at: at, size: size, options: o,
		viewBytes: map[*arrowField]int64{}}
}

// take counts n bytes of metadata. Once that is more than may be kept, what was kept is dropped, and
// the rest is counted.
func (f *arrowFile) take(n int64) bool {
	kept := f.meter.take(n)
	if !kept {
		f.top, f.encoded, f.batches, f.dictionaries = nil, nil, blocks[batch]{}, blocks[dictBatch]{}
	}
	return kept
}

// tooLarge returns the error that the metadata takes more than it may, with what all of reading takes
// where buffers are not compressed.
func (f *arrowFile) tooLarge() error {
	return &SizeError{f.describe(), f.held + arrowBytes + f.streams*streamBytes}
}

func (f *arrowFile) describe() string {
	return fmt.Sprintf("its metadata of %d bytes (columns and their parts: %d, record batches: %d)", f.footer, f.count,
		f.number)
}

// arrowBytes is what the metadata of a footer and of messages takes while it is looked at.
const arrowBytes = 4 * flatbuf.BufferBytes

// message reads the metadata of a message: io.EOF at the end mark of a stream. next is where its body
// begins.
func (f *arrowFile) message(offset int64) (m flatbuf.Table, from int64, size int32, err error) {
	var head [8]byte
	if offset == f.size {
		return m, 0, 0, corrupt("the file ends without its end mark")
	}
	n := min(8, f.size-offset)
	if n < 4 {
		return m, 0, 0, corrupt("the file ends early, at byte %d", f.size)
	}
	if err := f.readAt(head[:n], offset); err != nil {
		return m, 0, 0, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	from = offset + 4
	if length == 0xffffffff {
		if n < 8 {
			return m, 0, 0, corrupt("the file ends early, at byte %d", f.size)
		}
		length = binary.LittleEndian.Uint32(head[4:])
		from += 4
	}
	if length == 0 {
		return m, from, 0, io.EOF
	}
	if int64(length) > f.size-from || length > math.MaxInt32 {
		return m, 0, 0, corrupt("a message at byte %d is longer than the file", offset)
	}
	if err := f.meta.Open(f.readAt, from, int(length)); err != nil {
		return m, 0, 0, err
	}
	return f.meta.Root(), from, int32(length), nil
}

// salvage reads what it can of a damaged file. A file without its footer is read as the stream that
// it holds, and a stream up to where it breaks; its last batch then has the error.
func (f *arrowFile) salvage(isFile bool, cause error) error {
	if !errors.Is(cause, ErrCorrupt) {
		return cause
	}
	if isFile {
		*f = *newArrowFile(f.at, f.size, f.options)
		if _, err := f.readStream(int64(len(ArrowMagic))); err != nil && !errors.Is(err, ErrCorrupt) {
			return err
		}
	}
	if !f.isOpen {
		return cause
	}
	f.addBroken(cause)
	return nil
}

// note notes a message.
func (f *arrowFile) note(m flatbuf.Table, from int64, size int32, body, bodySize int64) error {
	if m.Err != nil {
		return m.Err
	}
	header, ok := m.Table(2)
	if !ok {
		return corrupt("a message at byte %d has no header", from)
	}
	if body-from > math.MaxInt32 {
		return corrupt("the message at byte %d ends after the file does", from)
	}
	switch m.Byte(1, 0) {
	case messageSchema:
		if f.isOpen {
			return corrupt("the file has two schemas")
		}
		f.footer = int64(size)
		return f.schema(header)
	case messageBatch:
		if !f.isOpen {
			return corrupt("a record batch precedes the schema")
		}
		rows := header.Long(0)
		if rows < 0 || rows > math.MaxInt64-f.rows {
			return corrupt("a record batch has an impossible number of rows")
		}
		f.rows += rows
		f.number++
		if f.take(batchBytes) {
			f.batches.add(batch{meta: from, metaSize: size, toBody: int32(body - from), bodySize: bodySize, rows: rows,
				dicts: int32(f.dictionaries.len())})
		}
	case messageDict:
		return f.takeDictionary(header, batch{meta: from, metaSize: size, toBody: int32(body - from),
			bodySize: bodySize})
	}
	return m.Err
}

// addBroken notes a record batch that cannot be read.
func (f *arrowFile) addBroken(cause error) {
	const each = 256
	f.number++
	if f.take(batchBytes + each) {
		if f.broken == nil {
			f.broken = map[int]error{}
		}
		f.broken[f.batches.len()] = cause
		f.batches.add(batch{broken: true})
	}
}

func (f *arrowFile) readFooter() error {
	const end = 10
	var tail [end]byte
	if f.size < 8+end {
		return corrupt("the file is too short for Arrow")
	}
	if err := f.readAt(tail[:], f.size-end); err != nil {
		return err
	}
	if string(tail[4:]) != ArrowMagic[:6] {
		return corrupt("the file ends without its footer")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > f.size-8-end || n > math.MaxInt32 {
		return corrupt("its footer is longer than the file")
	}
	f.footer = n
	var data flatbuf.Buffer
	if err := data.Open(f.readAt, f.size-end-n, int(n)); err != nil {
		return err
	}
	footer := data.Root()
	schema, ok := footer.Table(1)
	if !ok {
		return corrupt("its footer has no schema")
	}
	if err := f.schema(schema); err != nil {
		return err
	}
	for _, list := range []struct {
		slot int
		kind byte
		what string
	}{{2, messageDict, "dictionary"}, {3, messageBatch, "record batch"}} {
		at, blocks := footer.Vector(list.slot, 24)
		for i := range blocks {
			offset, metaSize := data.Int64(at+24*i), int64(data.Uint32(at+24*i+8))
			if data.Err != nil {
				return data.Err
			}
			err := f.block(list.kind, list.what, i, offset, metaSize, f.size-end-n)
			if list.kind == messageBatch && errors.Is(err, ErrCorrupt) && f.options.Lenient {
				f.addBroken(err)
			} else if err != nil {
				return err
			}
		}
	}
	return f.checkBefore(f.size - end - n)
}

// checkBefore refuses a file that stands after another one: its footer, which begins at an offset, would find the
// other's record batches in the places of its own.
func (f *arrowFile) checkBefore(footer int64) error {
	const around = 128 // bytes that writers may leave after the last batch
	before := footer - f.last
	if f.last == 0 || before < around {
		return nil
	}
	border := make([]byte, around+len(ArrowMagic))
	if err := f.readAt(border, before-around); err != nil {
		return err
	}
	if bytes.Contains(border, []byte(ArrowMagic[:6]+ArrowMagic[:6])) {
		return errBefore
	}
	return nil
}

// block notes the i-th message of a kind, which the footer places at an offset.
func (f *arrowFile) block(kind byte, what string, i int, offset, metaSize, end int64) error {
	if offset < 8 || offset >= end {
		return corrupt("%s %d lies outside the file", what, i+1)
	}
	m, from, size, err := f.message(offset)
	if err == io.EOF {
		err = corrupt("missing %s %d", what, i+1)
	}
	if err != nil {
		return err
	}
	body, bodySize := offset+metaSize, m.Long(3)
	if m.Byte(1, 0) != kind || metaSize < int64(size) || bodySize < 0 || body > f.size || bodySize > f.size-body {
		return corrupt("%s %d is damaged", what, i+1)
	}
	f.last = max(f.last, body+bodySize)
	return f.note(m, from, size, body, bodySize)
}

func (f *arrowFile) Groups() int { return f.batches.len() }

// Group implements File. An Arrow file says nothing of its values, so that no group is skipped.
func (f *arrowFile) Group(number int) Group {
	batch := f.batches.at(number)
	return Group{Rows: batch.rows, Bytes: batch.bodySize}
}

func (f *arrowFile) MemoryBytes() (n int64, why string) {
	n = f.meter.held + arrowBytes + f.window + f.values + 16*int64(f.views) // the last term is a batch and its garbage
	switch {
	case f.meter.held > max(usualPages, f.window, f.values):
		why = fmt.Sprintf("%s takes %d bytes", f.describe(), f.meter.held)
	case f.values > usualPages:
		why = fmt.Sprintf("dictionaries and compressed buffers of views take %d bytes at once", f.values)
	case f.window > usualPages:
		why = fmt.Sprintf("reading the buffers of %d columns takes %d bytes at once", len(f.top), f.window)
	}
	return n, why
}

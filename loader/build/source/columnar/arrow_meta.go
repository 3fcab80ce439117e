package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A batch is a record batch in the file.
type batch struct {
	meta     int64 // where its message's metadata begins
	metaSize int32
	body     int64
	bodySize int64
	rows     int64
	dicts    int   // messages of dictionaries before it
	err      error // why it cannot be read; its rows are then not known
}

type arrowFile struct {
	at      io.ReaderAt
	size    int64
	options Options
	fields  []*arrowField
	top     []*arrowField // the wanted columns
	batches []batch
	nodes   int // of a record batch
	buffers int
	views   int   // columns of views
	largest int64 // metadata of one message
	window  int64 // that decompressors of all wanted buffers take together

	encoded      []*arrowField         // wanted, by dictionaries
	dictionaries []dictBatch           // of these
	viewBytes    map[*arrowField]int64 // what the compressed buffers of a column of views take at most
	held         int64                 // that dictionaries, and compressed buffers of views, take
}

const (
	arrowMagic    = "ARROW1\x00\x00"
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
	n := u32(head, from-4)
	if n < 16 || n > maxMessage || n%8 != 0 {
		return false
	}
	m := rootTable(head[from:])
	return m.byte(1, 0) == messageSchema && m.short(0, 0) >= 2 && m.short(0, 0) <= 8
}

// OpenArrow reads the metadata of an Arrow IPC file or stream.
func OpenArrow(at io.ReaderAt, size int64, o Options) (File, error) {
	f := &arrowFile{at: at, size: size, options: o, viewBytes: map[*arrowField]int64{}}
	head := make([]byte, min(size, 8))
	if err := readAt(at, head, 0); err != nil {
		return nil, err
	}
	isFile := string(head) == arrowMagic
	var err error
	if isFile {
		err = f.readFooter()
	} else {
		err = f.readStream(0)
	}
	if err != nil && o.Lenient {
		err = f.salvage(isFile, err)
	}
	if err != nil {
		return nil, err
	}
	if o.Text != "" {
		if err := f.checkText(); err != nil {
			return nil, err
		}
	}
	for _, field := range f.top {
		if err := field.check(field.name); err != nil {
			return nil, err
		}
	}
	return f, f.measure()
}

// message reads the metadata of a message: io.EOF at the end mark of a stream. next is where its body
// begins.
func (f *arrowFile) message(offset int64) (m table, from int64, size int32, err error) {
	var head [8]byte
	if offset == f.size {
		return m, 0, 0, corrupt("the file ends without its end mark; copy it again")
	}
	n := min(8, f.size-offset)
	if n < 4 {
		return m, 0, 0, corrupt("the file ends early, at byte %d", f.size)
	}
	if err := readAt(f.at, head[:n], offset); err != nil {
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
	if length > maxMessage || int64(length) > f.size-from {
		return m, 0, 0, corrupt("a message at byte %d is longer than the file", offset)
	}
	if limit := f.options.MaxBytes; limit > 0 && int64(length) > limit {
		return m, 0, 0, &SizeError{"a message", int64(length)}
	}
	f.largest = max(f.largest, int64(length))
	data := make([]byte, length)
	if err := readAt(f.at, data, from); err != nil {
		return m, 0, 0, err
	}
	return rootTable(data), from, int32(length), nil
}

// salvage reads what it can of a damaged file. A file without its footer is read as the stream that
// it holds, and a stream up to where it breaks; its last batch then has the error.
func (f *arrowFile) salvage(isFile bool, cause error) error {
	if !errors.Is(cause, ErrCorrupt) {
		return cause
	}
	if isFile {
		*f = arrowFile{at: f.at, size: f.size, options: f.options, viewBytes: map[*arrowField]int64{}}
		if err := f.readStream(int64(len(arrowMagic))); err != nil && !errors.Is(err, ErrCorrupt) {
			return err
		}
	}
	if len(f.fields) == 0 {
		return cause
	}
	f.batches = append(f.batches, batch{err: cause})
	return nil
}

// readStream reads the messages from an offset on.
func (f *arrowFile) readStream(offset int64) error {
	for {
		m, from, size, err := f.message(offset)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		body, bodySize := from+int64(size), m.long(3)
		if bodySize < 0 || bodySize > f.size-body {
			return corrupt("the file ends within a record batch, which begins at byte %d", offset)
		}
		if err := f.take(m, from, size, body, bodySize); err != nil {
			return err
		}
		offset = body + (bodySize+7)/8*8
	}
	if f.fields == nil {
		return corrupt("the stream has no schema")
	}
	return nil
}

// take notes a message.
func (f *arrowFile) take(m table, from int64, size int32, body, bodySize int64) error {
	header, ok := m.table(2)
	if !ok {
		return corrupt("a message at byte %d has no header", from)
	}
	switch m.byte(1, 0) {
	case messageSchema:
		if f.fields != nil {
			return corrupt("the file has two schemas")
		}
		return f.schema(header)
	case messageBatch:
		if f.fields == nil {
			return corrupt("a record batch precedes the schema")
		}
		rows := header.long(0)
		if rows < 0 {
			return corrupt("a record batch has an impossible number of rows")
		}
		f.batches = append(f.batches, batch{meta: from, metaSize: size, body: body, bodySize: bodySize, rows: rows,
			dicts: len(f.dictionaries)})
	case messageDict:
		return f.takeDictionary(header, batch{meta: from, metaSize: size, body: body, bodySize: bodySize})
	}
	return nil
}

func (f *arrowFile) readFooter() error {
	const end = 10
	var tail [end]byte
	if f.size < 8+end {
		return corrupt("the file is too short for Arrow")
	}
	if err := readAt(f.at, tail[:], f.size-end); err != nil {
		return err
	}
	if string(tail[4:]) != arrowMagic[:6] {
		return corrupt("the file ends without its footer; copy it again")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > f.size-8-end || n > maxMessage {
		return corrupt("its footer is longer than the file")
	}
	f.largest = n
	data := make([]byte, n)
	if err := readAt(f.at, data, f.size-end-n); err != nil {
		return err
	}
	footer := rootTable(data)
	schema, ok := footer.table(1)
	if !ok {
		return corrupt("its footer has no schema")
	}
	if err := f.schema(schema); err != nil {
		return err
	}
	if err := f.footerDictionaries(footer, f.size-end-n); err != nil {
		return err
	}
	at, blocks := footer.vector(3, 24)
	for i := range blocks {
		offset, metaSize := i64(data, at+24*i), int64(u32(data, at+24*i+8))
		err := f.block(i, offset, metaSize, f.size-end-n)
		if errors.Is(err, ErrCorrupt) && f.options.Lenient {
			f.batches = append(f.batches, batch{err: err})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// block notes the record batch that the footer places at an offset.
func (f *arrowFile) block(i int, offset, metaSize, end int64) error {
	if offset < 8 || offset >= end {
		return corrupt("record batch %d lies outside the file", i+1)
	}
	m, from, size, err := f.message(offset)
	if err == io.EOF {
		err = corrupt("record batch %d is not there", i+1)
	}
	if err != nil {
		return err
	}
	body, bodySize := offset+metaSize, m.long(3)
	if m.byte(1, 0) != messageBatch || metaSize < int64(size) || bodySize < 0 || body > f.size ||
		bodySize > f.size-body {
		return corrupt("record batch %d is damaged", i+1)
	}
	return f.take(m, from, size, body, bodySize)
}

func (f *arrowFile) Columns() (names []string) {
	for _, a := range f.fields {
		names = append(names, a.name)
	}
	return names
}

func (f *arrowFile) Groups() int          { return len(f.batches) }
func (f *arrowFile) Rows(group int) int64 { return f.batches[group].rows }

func (f *arrowFile) GroupBytes(group int) int64 { return f.batches[group].bodySize }

func (f *arrowFile) MemoryBytes() (n int64, why string) {
	if f.window > usualPages {
		why = fmt.Sprintf("decompressing its buffers takes %d bytes at once", f.window)
	}
	if f.held > usualPages {
		why = fmt.Sprintf("dictionaries and compressed buffers of views take %d bytes at once", f.held)
	}
	return 2*f.largest + int64(len(f.batches)+len(f.dictionaries))*88 + f.window + f.held, why
}

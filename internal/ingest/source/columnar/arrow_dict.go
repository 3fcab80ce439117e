package columnar

import (
	"encoding/binary"
	"math"

	"github.com/dsload/dsload/internal/flatbuf"
)

// A column with a dictionary has numbers in its record batches. The values that they stand for are
// in separate messages, under the id of the dictionary: one message replaces the dictionary, others
// add to it. The values are held in memory while batches refer to them.

// A dictBatch is a message with values of a dictionary.
type dictBatch struct {
	batch
	id      int64
	isDelta bool
	bytes   int64 // what its values take in memory
}

// A dictionaryOf is what a column's schema says about its dictionary.
type dictionaryOf struct {
	id     int64
	width  int // bytes of a number
	values *arrowField
}

// dictionaryField reads how a column is encoded.
func (a *arrowField) dictionaryField(t flatbuf.Table) {
	d := &dictionaryOf{id: t.Long(0), width: 4}
	if typ, ok := t.Table(1); ok {
		d.width = typ.Int(0, 0) / 8
	}
	values := *a
	values.node, values.buffer, values.views, values.dictionary = 0, 0, 0, nil
	d.values = &values
	a.dictionary = d
}

// checkDictionary refuses unsupported dictionaries.
func (a *arrowField) checkDictionary(path string) error {
	d := a.dictionary
	if d.width != 1 && d.width != 2 && d.width != 4 && d.width != 8 {
		return corrupt("column %s has numbers of an impossible width", path)
	}
	if a.kind == arrowList || a.kind == arrowLargeList || a.kind == arrowFixedList || a.kind == arrowMap ||
		a.kind == arrowStruct || a.kind == arrowNull {
		return unreadType("column %s is encoded by a dictionary of %s; %s", path, typeName(a.kind), decodeFirst)
	}
	return d.values.check(path)
}

// decodeFirst is what to do about a column of an unsupported type.
const decodeFirst = "cast it to a plain type before writing it, or leave it out of the wanted columns"

// takeDictionary notes a message of a dictionary that a wanted column uses.
func (f *arrowFile) takeDictionary(header flatbuf.Table, b batch) error {
	d := dictBatch{batch: b, id: header.Long(0), isDelta: header.Byte(2, 0) != 0}
	data, ok := header.Table(1)
	if !ok {
		return corrupt("a dictionary at byte %d has no values", b.meta)
	}
	d.rows = data.Long(0)
	for _, a := range f.encoded {
		if a.dictionary.id != d.id {
			continue
		}
		h, err := batchHeaderOf(data, 1, a.dictionary.values.buffers, 0)
		if err != nil {
			return err
		}
		if d.bytes, err = f.dictionaryBytes(a.dictionary.values, &d, &h); err != nil {
			return err
		}
		if f.take(dictBytes) {
			f.dictionaries.add(d)
		}
		break
	}
	return nil
}

const (
	// entryBytes is what a value of a dictionary takes besides its text.
	entryBytes = 9
	// numberBytes bounds the JSON of a value that is not text.
	numberBytes = 96
)

// dictionaryBytes bounds what values take in memory. It refuses more values than the buffers can hold.
func (f *arrowFile) dictionaryBytes(a *arrowField, d *dictBatch, h *batchHeader) (int64, error) {
	var lengths [3]int64
	for j := range a.buffers {
		n, _, err := f.bufferLength(&d.batch, h.buffer(a.buffer+j), h.compression)
		if err != nil {
			return 0, err
		}
		lengths[j] = n
	}
	each := int64(a.width)
	switch a.kind {
	case arrowBinary, arrowUtf8:
		each = 4
	case arrowLargeBinary, arrowLargeUtf8:
		each = 8
	case arrowBinaryView, arrowUtf8View:
		each = viewBytes
	}
	if rows := d.rows; rows < 0 || a.kind == arrowBool && rows/8 > lengths[1] || a.kind != arrowBool &&
		rows > lengths[1]/max(1, each) {
		return 0, corrupt("a dictionary at byte %d has fewer values than it says", d.meta)
	}
	n := d.rows * entryBytes
	switch {
	case a.isView():
		before := f.viewBytes[a]
		f.viewBytes[a] = 0
		if _, err := f.viewWindow(a, &d.batch, h); err != nil {
			return 0, err
		}
		n += f.viewBytes[a] + d.rows*inlineBytes // the values, besides the buffers themselves
		f.viewBytes[a] = max(before, f.viewBytes[a])
	case a.isText():
		n += lengths[2]
	case a.kind == arrowFixedBinary: // each byte may be escaped
		n += d.rows * (2 + 6*each)
	default:
		n += d.rows * numberBytes
	}
	return n, nil
}

// bufferLength is how long a buffer is after decompression, as it says, and whether it is compressed.
func (f *arrowFile) bufferLength(b *batch, buf buffer, compression int) (n int64, packed bool, err error) {
	if buf.offset < 0 || buf.length < 0 || buf.offset > b.bodySize-buf.length {
		return 0, false, corrupt("a buffer lies outside its record batch")
	}
	if compression == compressionNone || buf.length < 8 {
		return buf.length, false, nil
	}
	var head [8]byte
	if err := f.readAt(head[:], b.body()+buf.offset); err != nil {
		return 0, false, err
	}
	n = int64(binary.LittleEndian.Uint64(head[:]))
	if n == -1 {
		return buf.length - 8, false, nil
	}
	if n < 0 || n > math.MaxInt32<<8 {
		return 0, false, corrupt("a buffer has an impossible length")
	}
	return n, true, nil
}

// mostOf returns the maximum memory that a dictionary takes, with all that is added to it.
func (f *arrowFile) mostOf(id int64) (most int64) {
	var now int64
	for i := range f.dictionaries.len() {
		switch d := f.dictionaries.at(i); {
		case d.id != id:
			continue
		case d.isDelta:
			now += d.bytes
		default:
			now = d.bytes
		}
		most = max(most, now)
	}
	return most
}

// An arrowDictionary is the values of a column's dictionary.
type arrowDictionary struct {
	of     *dictionaryOf
	reader *arrowReader
	meta   flatbuf.Buffer // describes the message that is read
	loaded int            // messages of the file that were looked at

	text  []byte  // the values one after another: texts as they are, others as JSON
	ends  []int64 // where each value ends
	valid []bool
}

// load brings the dictionary to its state after the first messages of dictionaries in the file.
func (d *arrowDictionary) load(f *arrowFile, messages int) error {
	if messages < d.loaded {
		d.loaded = 0
	}
	from, isNew := d.loaded, d.loaded == 0
	for i := messages - 1; i >= d.loaded; i-- {
		if m := f.dictionaries.at(i); m.id == d.of.id && !m.isDelta {
			from, isNew = i, true
			break
		}
	}
	if isNew {
		d.text, d.ends, d.valid = d.text[:0], d.ends[:0], d.valid[:0]
	}
	d.loaded = 0
	for i := from; i < messages; i++ {
		if m := f.dictionaries.at(i); m.id == d.of.id {
			if err := d.add(f, m); err != nil {
				return err
			}
		}
	}
	d.loaded = messages
	return nil
}

// add appends the values of a message.
func (d *arrowDictionary) add(f *arrowFile, m *dictBatch) error {
	if err := d.meta.Open(f.readAt, m.meta, int(m.metaSize)); err != nil {
		return err
	}
	t, _ := d.meta.Root().Table(2)
	if t, _ = t.Table(1); t.Buffer == nil {
		return corrupt("a dictionary has no values")
	}
	h, err := batchHeaderOf(t, 1, d.of.values.buffers, 0)
	if err != nil {
		return err
	}
	r := d.reader
	if err := r.open(f, &m.batch, &h); err != nil {
		return err
	}
	if d.meta.Err != nil {
		return d.meta.Err
	}
	if r.length != m.rows {
		return corrupt("a dictionary has %d values and says %d", r.length, m.rows)
	}
	if d.text == nil {
		d.text = make([]byte, 0, f.mostOf(m.id)) // touched as it is filled
	}
	none := object{limit: maxValueBytes}
	for range m.rows {
		var valid bool
		if d.of.values.isText() {
			var b []byte
			if valid, b, err = r.next(); err == nil && valid {
				d.text = append(d.text, b...)
			}
		} else {
			none.start, none.values = len(d.text), 0
			if d.text, err = r.appendJSON(d.text, &none); err == nil {
				valid = string(d.text[none.start:]) != "null"
			}
		}
		if err != nil {
			return err
		}
		d.ends, d.valid = append(d.ends, int64(len(d.text))), append(d.valid, valid)
	}
	r.data.release()
	return nil
}

// value returns a value by its number; valid is false where it is null.
func (d *arrowDictionary) value(number []byte) (b []byte, valid bool, err error) {
	var i uint64
	for j, v := range number {
		i |= uint64(v) << (8 * j)
	}
	if i >= uint64(len(d.ends)) {
		return nil, false, corrupt("a value lies outside the dictionary")
	}
	start := int64(0)
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.text[start:d.ends[i]], d.valid[i], nil
}

package scratch

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/dsload/dsload/internal/fault"
)

// A Table is a list of byte strings, reached by index. It holds TableBytes at most however long it is.
type Table struct {
	data, ends *File
	rows       int
	pending    [2][]byte // what is not yet written to data and ends

	mu     sync.Mutex
	window []byte // a stretch of data that was read, from offset at on
	at     int64
	marks  [2 * 8]byte
}

const tableBuffer = 64 << 10

// TableBytes is what a table holds in memory, but for rows that are longer.
const TableBytes = 4 * tableBuffer

// NewTable makes a table whose files lie in dir.
func NewTable(dir string) (*Table, error) {
	data, err := New(dir)
	if err != nil {
		return nil, err
	}
	ends, err := New(dir)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	return &Table{data: data, ends: ends}, nil
}

// Add appends a row. It must not be called after the first call of Row.
func (t *Table) Add(row []byte) error {
	t.pending[0] = append(t.pending[0], row...)
	end := t.data.size + int64(len(t.pending[0]))
	t.pending[1] = binary.LittleEndian.AppendUint64(t.pending[1], uint64(end))
	t.rows++
	if len(t.pending[0])+len(t.pending[1]) < tableBuffer {
		return nil
	}
	return t.flush()
}

// Len returns the number of rows; that of nil is 0.
func (t *Table) Len() int {
	if t == nil {
		return 0
	}
	return t.rows
}

func (t *Table) flush() error {
	for i, f := range []*File{t.data, t.ends} {
		if len(t.pending[i]) > 0 {
			if err := f.append(t.pending[i]); err != nil {
				return err
			}
		}
		t.pending[i] = t.pending[i][:0]
	}
	return nil
}

// Row calls use with row i, whose bytes are valid until use returns. Rows that are asked for in
// order are read many at a time.
func (t *Table) Row(i int, use func(row []byte) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.flush(); err != nil {
		return err
	}
	marks, start := t.marks[:8], int64(0)
	if i > 0 {
		marks = t.marks[:16]
	}
	if _, err := t.ends.file.ReadAt(marks, int64(i+1)*8-int64(len(marks))); err != nil {
		return ListError(err)
	}
	if i > 0 {
		start = int64(binary.LittleEndian.Uint64(marks))
	}
	n := int(int64(binary.LittleEndian.Uint64(marks[len(marks)-8:])) - start)
	if start < t.at || start+int64(n) > t.at+int64(len(t.window)) {
		want := min(max(n, tableBuffer), int(t.data.size-start))
		if cap(t.window) < want {
			t.window = make([]byte, want)
		}
		t.window, t.at = t.window[:want], start
		if _, err := t.data.file.ReadAt(t.window, start); err != nil {
			t.window = nil
			return ListError(err)
		}
	}
	return use(t.window[start-t.at:][:n])
}

// AppendRow appends numbers and words to a row.
func AppendRow(row []byte, numbers []int64, words ...string) []byte {
	for _, v := range numbers {
		row = binary.AppendVarint(row, v)
	}
	for _, word := range words {
		row = binary.AppendUvarint(row, uint64(len(word)))
		row = append(row, word...)
	}
	return row
}

// ParseRow reads what AppendRow wrote, and returns what follows it.
func ParseRow(row []byte, numbers []*int64, words ...*string) (rest []byte, err error) {
	for _, v := range numbers {
		n := 0
		*v, n = binary.Varint(row)
		row = row[max(n, 0):]
	}
	for _, word := range words {
		size, n := binary.Uvarint(row)
		if n <= 0 || size > uint64(len(row)-n) {
			return nil, ListError(errShortRow)
		}
		*word, row = string(row[n:][:size]), row[n:][size:]
	}
	return row, nil
}

var errShortRow = fault.New(fault.Corrupt, "a row of it ends early")

// Close releases the files. Closing nil does nothing.
func (t *Table) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.data.Close(), t.ends.Close())
}

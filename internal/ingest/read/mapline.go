package read

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/jsonscan"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// A mapLine writes records as lines of JSON. Its buffers grow to the longest record.
type mapLine struct {
	w     *bufio.Writer
	rows  *example.Worker // decodes rows of CSV
	scan  jsonscan.Scanner
	clean []byte // the record, with ill-formed parts replaced

	// Of the record that was set.
	rec  *source.Record
	data []byte
	at   func(column int) []byte
}

// set takes a whole record and returns how many ill-formed parts of it become U+FFFD. The error says what is
// wrong with the record. It and its bytes must stay as they are until it is written.
func (l *mapLine) set(rec *source.Record, data []byte) (replaced int, err error) {
	if !wellformed.Valid(data) {
		l.clean, replaced = wellformed.Append(l.clean[:0], data)
		data = l.clean
	}
	l.rec, l.data = rec, data
	switch {
	case rec.Decoded:
	case rec.Columns != nil:
		l.at, err = l.rows.Row(example.Record{Columns: rec.Columns, Comma: rec.Comma}, data)
	default:
		l.scan.Reset(data)
		if err = l.scan.Members(func([]byte) error { return l.scan.Skip() }); err == nil {
			err = l.scan.End()
		}
		if err != nil {
			err = fault.Of(example.ErrMalformed, "%v", err)
		}
	}
	return replaced, err
}

// write writes the record that was set: a JSON object as it is, a row as an object of strings by column, and a
// text as the member text of an object.
func (l *mapLine) write() error {
	switch {
	case l.rec.Decoded:
		writeText(l.w, `{"text":`, l.data)
	case l.rec.Columns != nil:
		before := "{"
		for i, name := range l.rec.Columns {
			writeText(l.w, before, []byte(strings.ToValidUTF8(name, string(utf8.RuneError))))
			writeText(l.w, ":", l.at(i))
			before = ","
		}
	default:
		for rest := l.data; len(rest) > 0; { // line ends between the members of an object mean nothing
			i := bytes.IndexAny(rest, "\n\r")
			if i < 0 {
				i = len(rest)
			}
			_, _ = l.w.Write(rest[:i]) // a bufio.Writer keeps its error
			if rest = rest[i:]; len(rest) > 0 {
				_ = l.w.WriteByte(' ')
				rest = rest[1:]
			}
		}
		_ = l.w.WriteByte('\n')
		return l.w.Flush()
	}
	_, _ = l.w.WriteString("}\n")
	return l.w.Flush()
}

// writeText writes a well-formed text as a JSON string, after what is written before it.
func writeText(w *bufio.Writer, before string, text []byte) {
	_, _ = w.WriteString(before)
	_ = w.WriteByte('"')
	for part := range slices.Chunk(text, mapBufferBytes/8) { // a long text is not copied whole
		_, _ = w.Write(jsonscan.AppendEscaped(w.AvailableBuffer(), part))
	}
	_ = w.WriteByte('"')
}

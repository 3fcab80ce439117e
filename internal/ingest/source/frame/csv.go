package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/csvscan"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// CSV is framed by the rules of package csvscan. Blank lines are skipped.
//
// After an error, framing resumes at the line after the one in which the record began: most often a
// quote was not closed, and the rest of the input would otherwise be read inside out.

// A csvFramer finds where records end, in a window that slides over the input, and decodes the header
// alone. Decoding the fields of the other records is the work of package example, in the workers.
type csvFramer struct {
	framing
	Stateless
	columns []string
	comma   byte
}

// NewCSV returns the framer of CSV. It reads the header, with which every CSV input begins unless
// Options.Columns names the columns.
func NewCSV(w *Window, o *Options) (Framer, error) {
	c := &csvFramer{framing: framing{w: w, o: o}, comma: o.Delimiter}
	for {
		n, total, err := c.record(c.comma)
		if n == 0 && total == 0 && err == io.EOF {
			return c, nil
		}
		if err == nil && IsBlank(c.w.Unread()[:n]) {
			c.w.Consume(total)
			continue
		}
		if c.o.Columns != nil {
			line := c.w.Unread()[:max(n, 0)]
			if c.columns = c.o.Columns; c.comma == 0 {
				c.comma = separatorOf(line, len(c.columns))
			}
			return c, c.checkNoHeader(line) // the record's error is reported when it is read
		}
		if err == nil && c.comma == 0 {
			c.comma = SniffComma(c.w.Unread()[:n])
			n, total, err = c.record(c.comma)
		}
		text := c.w.Unread()
		if at := bytes.IndexByte(text, '\r'); err != nil && at >= 0 && at < len(text)-1 && bytes.IndexByte(text, '\n') < 0 {
			return nil, fault.Of(cause.Unsupported,
				"its lines end in a carriage return alone; convert it with `tr '\\r' '\\n'`")
		}
		if err != nil && err != io.EOF {
			return nil, fault.Of(cause.Malformed, "the header cannot be read: %v", err)
		}
		if err := c.setHeader(c.w.Unread()[:n]); err != nil {
			return nil, err
		}
		if err := c.checkHeader(); err != nil {
			return nil, err
		}
		c.w.Consume(total)
		return c, nil
	}
}

func (c *csvFramer) setHeader(line []byte) error {
	n := 0 // columns; those above the limit are counted and not kept
	add := func(field []byte) {
		if n++; n <= maxColumns {
			c.columns = append(c.columns, strings.ToValidUTF8(string(field), "\uFFFD"))
		}
	}
	var field []byte
	for len(line) > 0 {
		field, line, _ = csvscan.AppendField(field[:0], line, c.comma) // record checked it
		add(field)
		if len(line) == 1 {
			add(nil)
		}
		line = line[min(1, len(line)):] // the separator
	}
	if n > maxColumns {
		return fault.Of(cause.TooLarge, "the header has %d columns, more than %d", n, maxColumns)
	}
	trimColumns(c.columns)
	return nil
}

// checkNoHeader returns an error if the first line has the names that Options.Columns gives, in any order: each of
// them would become a text.
func (c *csvFramer) checkNoHeader(line []byte) error {
	first := csvFramer{comma: c.comma}
	if first.setHeader(line) != nil || !slices.Equal(sortedNames(first.columns), sortedNames(c.columns)) {
		return nil
	}
	return fault.Of(cause.Unsupported, "its first line has the names of {columns}: it is a header; leave {columns} out")
}

func sortedNames(columns []string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, name := range columns {
			if !yield(strings.ToLower(name)) {
				return
			}
		}
	})
}

// checkHeader refuses a header that is none, and one in which a wanted field is the name of several columns.
func (c *csvFramer) checkHeader() error {
	seen := make(map[string]bool, len(c.columns))
	for i, name := range c.columns {
		if i == 0 && len(name) <= len("sep=;") && strings.HasPrefix(strings.ToLower(name), "sep=") {
			return fault.Of(cause.Unsupported, "its first line, sep=, is for Excel and no header; remove it, "+
				"as with `tail -n +2`")
		}
		wanted := c.o.Fields == nil && name != "" || slices.Contains(c.o.Fields, name)
		if wanted && seen[name] {
			return fault.Of(cause.Unsupported, "several columns of its header are named %q; give each another name, "+
				"so that it is clear which to read", name)
		}
		seen[name] = true
	}
	return nil
}

// trimColumns removes the white space around names, as in "id, text", where that leaves names and
// makes no two the same.
func trimColumns(columns []string) {
	var taken map[string]bool
	for i, name := range columns {
		trimmed := strings.TrimSpace(name)
		if trimmed == name || trimmed == "" {
			continue
		}
		if taken == nil {
			taken = make(map[string]bool, len(columns))
			for _, c := range columns {
				taken[c] = true
			}
		}
		if !taken[trimmed] {
			columns[i], taken[trimmed] = trimmed, true
		}
	}
}

const maxColumns = 1 << 14

// SniffComma returns the most frequent separator of the header outside quotes, a comma if there is
// none.
func SniffComma(header []byte) byte {
	counts := countUnquoted(header)
	best := byte(',')
	for _, b := range []byte{'\t', ';', '|'} {
		if counts[b] > counts[best] {
			best = b
		}
	}
	return best
}

// countUnquoted counts the bytes of a record outside quotes.
func countUnquoted(record []byte) (counts [256]int) {
	quoted := false
	for _, b := range record {
		if b == '"' {
			quoted = !quoted
		} else if !quoted {
			counts[b]++
		}
	}
	return counts
}

// separatorOf returns the separator that splits a record into as many fields as there are columns.
func separatorOf(record []byte, columns int) byte {
	counts := countUnquoted(record)
	for _, comma := range []byte{'\t', ';', ',', '|'} {
		if counts[comma]+1 == columns && columns > 1 {
			return comma
		}
	}
	return SniffComma(record)
}

func (c *csvFramer) Next(dst []byte, rec *Record) ([]byte, error) {
	for {
		rec.Offset = c.w.Offset()
		n, total, err := c.record(c.comma)
		switch {
		case err == nil || err == io.EOF:
			if err == io.EOF && n == 0 && total == 0 {
				return dst, io.EOF
			}
			data := c.w.Unread()[:n]
			if IsBlank(data) && (c.comma != '\t' || bytes.IndexByte(data, '\t') < 0) {
				c.w.Consume(total)
				continue
			}
			dst = append(dst, data...)
			c.w.Consume(total)
		case c.w.Failed() != nil && err == c.w.Failed(): // reading failed, not the record
			return dst, err
		default:
			rec.Err = err
			skip := c.skipLine
			if errors.Is(err, cause.TooLarge) {
				skip = c.skipRecord
			}
			if err := skip(); err != nil {
				return dst, err
			}
		}
		rec.First, rec.Last, rec.Columns, rec.Comma = true, true, c.columns, c.comma
		return dst, nil
	}
}

// record finds the end of the record that the window begins with: n bytes, total with the line end.
// io.EOF is returned with the last record where no line end follows it. Nothing is consumed. A
// comma of 0 takes any separator.
func (c *csvFramer) record(comma byte) (n, total int, err error) {
	scan, p := csvscan.Bounds{Comma: comma}, 0
	for {
		data := c.w.Unread()
		p += scan.Skip(data[p:min(len(data), c.o.MaxRecordBytes+2)])
		switch {
		case scan.Ended:
			n = p - 1
			if n > 0 && data[n-1] == '\r' {
				n--
			}
			return c.checked(n, p)
		case scan.Bad:
			return 0, 0, fault.Of(cause.Malformed,
				"%q after a closing quote, %d bytes into the record; a quote inside quotes is written twice",
				printable(data[p]), p)
		case p >= c.o.MaxRecordBytes+2:
			return 0, 0, TooLarge(c.o.MaxRecordBytes)
		case c.w.fill():
			continue
		case c.w.Failed() != nil:
			return 0, 0, c.w.Failed()
		case scan.Open():
			return 0, 0, fault.Of(cause.Malformed, "a quoted field is not closed before the end of the file")
		}
		if n, total, err = c.checked(p, p); err == nil {
			err = io.EOF
		}
		return n, total, err
	}
}

func (c *csvFramer) checked(n, total int) (int, int, error) {
	if n > c.o.MaxRecordBytes {
		return 0, 0, TooLarge(c.o.MaxRecordBytes)
	}
	return n, total, nil
}

// skipRecord consumes a record that is too large, by the same rules but without holding it.
func (c *csvFramer) skipRecord() error {
	scan := csvscan.Bounds{Comma: c.comma}
	for {
		c.w.Consume(scan.Skip(c.w.Unread()))
		switch {
		case scan.Ended:
			return nil
		case scan.Bad:
			scan.Bad = false
		case !c.w.fill():
			return c.w.Failed()
		}
	}
}

func printable(b byte) string {
	if b < 0x20 || b >= 0x7f {
		return fmt.Sprintf(`\x%02x`, b)
	}
	return string(rune(b))
}

// Header returns the columns of CSV that begins with text, nil if the text does not show them. whole reports
// that text is all there is.
func Header(o *Options, text []byte, whole bool) []string {
	w := Window{buf: text, w: len(text), err: io.EOF, limit: NoLimit, max: len(text)}
	if !whole {
		w.err = io.ErrUnexpectedEOF // a header that continues is an error
	}
	c, err := NewCSV(&w, o)
	if err != nil {
		return nil
	}
	return c.(*csvFramer).columns
}

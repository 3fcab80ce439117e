package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsload/dsload/internal/fault"
)

// CSV is framed as RFC 4180 says: a field in quotes may hold separators, line ends and doubled
// quotes. A quote inside an unquoted field is an ordinary character, as spreadsheets and Python
// write it; anything but a separator or a line end after a closing quote is an error. Blank lines
// are skipped.
//
// After an error, framing goes on at the line after the one in which the record began: most often a
// quote was not closed, and the rest of the input would otherwise be read inside out.

// Framing finds where records end, in a window that slides over the input, and decodes the header
// alone. Splitting and decoding the fields of the other records is package example's work, in the
// workers; it may rely on what was checked here.

type csvFramer struct {
	framing
	columns []string
	comma   byte
}

// newCSV reads the header, with which every CSV input begins unless Options.Columns names the
// columns.
func newCSV(f framing) (*csvFramer, error) {
	c := &csvFramer{framing: f, comma: f.o.Delimiter}
	for {
		n, total, err := c.record(c.comma)
		if n == 0 && total == 0 && err == io.EOF {
			return c, nil
		}
		if err == nil && isBlank(c.w.unread()[:n]) {
			c.w.consume(total)
			continue
		}
		if c.o.Columns != nil {
			if c.columns = c.o.Columns; c.comma == 0 {
				c.comma = separatorOf(c.w.unread()[:max(n, 0)], len(c.columns))
			}
			return c, nil // the record's error is reported when it is read
		}
		if err == nil && c.comma == 0 {
			c.comma = sniffComma(c.w.unread()[:n])
			n, total, err = c.record(c.comma)
		}
		if err != nil && endsLinesInCR(c.w.unread()) {
			return nil, fault.Of(ErrUnsupported,
				"its lines end in a carriage return alone; convert it with `tr '\\r' '\\n'`")
		}
		if err != nil && err != io.EOF {
			return nil, fault.Of(ErrMalformed, "the header cannot be read: %v", err)
		}
		if err := c.setHeader(c.w.unread()[:n]); err != nil {
			return nil, err
		}
		c.w.consume(total)
		return c, nil
	}
}

// endsLinesInCR reports whether text without a line feed has carriage returns between its lines.
func endsLinesInCR(text []byte) bool {
	at := bytes.IndexByte(text, '\r')
	return at >= 0 && at < len(text)-1 && bytes.IndexByte(text, '\n') < 0
}

func (c *csvFramer) state() uint32  { return 0 }
func (c *csvFramer) restore(uint32) {}

func (c *csvFramer) setHeader(line []byte) error {
	n := 0 // columns; those above the limit are counted and not kept
	add := func(field []byte) {
		if n++; n <= maxColumns {
			c.columns = append(c.columns, strings.ToValidUTF8(string(field), "\uFFFD"))
		}
	}
	for len(line) > 0 {
		var field []byte
		if line[0] == '"' {
			end := 1
			for end < len(line) && (line[end] != '"' || end+1 < len(line) && line[end+1] == '"') {
				if line[end] == '"' {
					end++
				}
				end++
			}
			field = bytes.ReplaceAll(line[1:min(end, len(line))], []byte(`""`), []byte(`"`))
			line = line[min(end+1, len(line)):]
		} else {
			end := bytes.IndexByte(line, c.comma)
			if end < 0 {
				end = len(line)
			}
			field, line = line[:end], line[end:]
		}
		add(field)
		if len(line) == 0 {
			break
		}
		line = line[1:] // the separator: record checked that nothing else stands there
		if len(line) == 0 {
			add(nil)
		}
	}
	if n > maxColumns {
		return fault.Of(ErrTooLarge, "the header has %d columns, more than %d", n, maxColumns)
	}
	trimColumns(c.columns)
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

// sniffComma returns the most frequent separator of the header outside quotes, a comma if there is
// none.
func sniffComma(header []byte) byte {
	counts := map[byte]int{}
	quoted := false
	for _, b := range header {
		if b == '"' {
			quoted = !quoted
		} else if !quoted {
			counts[b]++
		}
	}
	best := byte(',')
	for _, b := range []byte{'\t', ';', '|'} {
		if counts[b] > counts[best] {
			best = b
		}
	}
	return best
}

// separatorOf returns the separator that splits a record into as many fields as there are columns.
func separatorOf(record []byte, columns int) byte {
	for _, comma := range []byte{'\t', ';', ',', '|'} {
		fields, quoted := 1, false
		for _, b := range record {
			if b == '"' {
				quoted = !quoted
			} else if b == comma && !quoted {
				fields++
			}
		}
		if fields == columns && columns > 1 {
			return comma
		}
	}
	return sniffComma(record)
}

func (c *csvFramer) next(dst []byte, rec *Record) ([]byte, error) {
	for {
		rec.Offset = c.w.offset()
		n, total, err := c.record(c.comma)
		switch {
		case err == nil || err == io.EOF:
			if err == io.EOF && n == 0 && total == 0 {
				return dst, io.EOF
			}
			data := c.w.unread()[:n]
			if isBlank(data) && (c.comma != '\t' || bytes.IndexByte(data, '\t') < 0) {
				c.w.consume(total)
				continue
			}
			dst = append(dst, data...)
			c.w.consume(total)
		case c.w.failed() != nil && err == c.w.failed(): // reading failed, not the record
			return dst, err
		default:
			rec.Err = err
			if err := c.resume(err); err != nil {
				return dst, err
			}
		}
		rec.First, rec.Last, rec.Columns, rec.Comma = true, true, c.columns, c.comma
		return dst, nil
	}
}

// resume goes after a bad record.
func (c *csvFramer) resume(cause error) error {
	if errors.Is(cause, ErrTooLarge) {
		return c.skipRecord()
	}
	return c.skipLine()
}

type csvState uint8

const (
	fieldStart csvState = iota
	unquoted
	quoted
	afterQuote // after a quote in a quoted field: doubled, or the field's end
)

// record finds the end of the record that the window begins with: n bytes, total with the line end.
// io.EOF is returned with the last record where no line end follows it. Nothing is consumed. A
// comma of 0 takes any separator.
func (c *csvFramer) record(comma byte) (n, total int, err error) {
	state, p := fieldStart, 0
	for {
		data := c.w.unread()
		limit := min(len(data), c.o.MaxRecordBytes+2)
		for p < limit {
			switch b := data[p]; state {
			case quoted:
				i := bytes.IndexByte(data[p:limit], '"')
				if i < 0 {
					p = limit
					continue
				}
				p += i
				state = afterQuote
			case afterQuote:
				switch {
				case b == '"':
					state = quoted
				case isComma(b, comma):
					state = fieldStart
				case b == '\n' || b == '\r':
					state = unquoted
					continue
				default:
					return 0, 0, fault.Of(ErrMalformed,
						"%q after a closing quote, %d bytes into the record; a quote inside quotes is written twice",
						printable(b), p)
				}
			case fieldStart, unquoted:
				switch {
				case b == '\n':
					n = p
					if n > 0 && data[n-1] == '\r' {
						n--
					}
					return c.checked(n, p+1)
				case isComma(b, comma):
					state = fieldStart
				case b == '"' && state == fieldStart:
					state = quoted
				default:
					state = unquoted
				}
			}
			p++
		}
		if p >= c.o.MaxRecordBytes+2 {
			return 0, 0, tooLarge(c.o.MaxRecordBytes)
		}
		if !c.w.fill() {
			return c.lastRecord(state, p)
		}
	}
}

// lastRecord ends the record at the end of the input, p bytes on, with io.EOF.
func (c *csvFramer) lastRecord(state csvState, p int) (n, total int, err error) {
	if err := c.w.failed(); err != nil {
		return 0, 0, err
	}
	if state == quoted {
		return 0, 0, fault.Of(ErrMalformed, "a quoted field is not closed before the end of the file")
	}
	if n, total, err = c.checked(p, p); err == nil {
		err = io.EOF
	}
	return n, total, err
}

// isComma reports whether b separates fields; comma 0 stands for any separator, before the header
// tells which.
func isComma(b, comma byte) bool {
	return b == comma || comma == 0 && (b == ',' || b == ';' || b == '\t' || b == '|')
}

func (c *csvFramer) checked(n, total int) (int, int, error) {
	if n > c.o.MaxRecordBytes {
		return 0, 0, tooLarge(c.o.MaxRecordBytes)
	}
	return n, total, nil
}

// skipRecord consumes a record that is too large, by the same rules but without holding it.
func (c *csvFramer) skipRecord() error {
	state := fieldStart
	for {
		data := c.w.unread()
		for p, b := range data {
			switch state {
			case quoted:
				if b == '"' {
					state = afterQuote
				}
				continue
			case afterQuote:
				if b == '"' {
					state = quoted
					continue
				}
			}
			switch {
			case b == '\n':
				c.w.consume(p + 1)
				return nil
			case b == c.comma:
				state = fieldStart
			case b == '"' && state == fieldStart:
				state = quoted
			default:
				state = unquoted
			}
		}
		c.w.consume(len(data))
		if !c.w.fill() {
			return c.w.failed()
		}
	}
}

func printable(b byte) string {
	if b < 0x20 || b >= 0x7f {
		return fmt.Sprintf(`\x%02x`, b)
	}
	return string(rune(b))
}

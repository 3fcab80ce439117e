package example

import (
	"github.com/dsload/dsload/internal/csvscan"
	"github.com/dsload/dsload/internal/fault"
)

// csvFields holds the decoded fields of a CSV record, concatenated.
type csvFields struct {
	text []byte
	ends []int
}

func (c *csvFields) at(i int) []byte {
	if i == 0 {
		return c.text[:c.ends[0]]
	}
	return c.text[c.ends[i-1]:c.ends[i]]
}

// parse splits a record, without its line end, into exactly columns fields.
func (c *csvFields) parse(data []byte, comma byte, columns int) error {
	c.text, c.ends = c.text[:0], c.ends[:0]
	for {
		if len(c.ends) == columns {
			return fault.Of(ErrMalformed, "more fields than there are columns (%d)", columns)
		}
		var ok bool
		if c.text, data, ok = csvscan.AppendField(c.text, data, comma); !ok {
			return fault.Of(ErrMalformed, "field %d is not closed by a quote", len(c.ends)+1)
		}
		c.ends = append(c.ends, len(c.text))
		if len(data) == 0 {
			break
		}
		if data[0] != comma {
			return fault.Of(ErrMalformed, "field %d continues after its closing quote", len(c.ends))
		}
		data = data[1:]
	}
	if len(c.ends) < columns {
		return fault.Of(ErrMalformed, "%d fields where there are %d columns", len(c.ends), columns)
	}
	return nil
}

// Row decodes the fields of a CSV record. at returns the field of a column, valid until the
// worker's next record.
func (w *Worker) Row(rec Record, data []byte) (at func(column int) []byte, err error) {
	if err := w.fields.parse(data, rec.Comma, len(rec.Columns)); err != nil {
		return nil, err
	}
	return w.fields.at, nil
}

// FieldNames returns the first fields of a well-formed JSON record, for messages.
func FieldNames(record []byte) []string {
	if e, ok := missingField("", record).(*FieldError); ok {
		return e.Has
	}
	return nil
}

// Guess returns what the text of a record may be, as the error of one that lacks its field. Other errors say what is
// wrong with the record.
func (w *Worker) Guess(rec Record, data []byte) (*FieldError, error) {
	var err error
	if rec.Columns == nil {
		err = missingField("", data)
	} else if err = w.parseRow(rec, data); err == nil {
		err = missingColumn("", rec.Columns, &w.fields)
	}
	if e, ok := err.(*FieldError); ok {
		return e, nil
	}
	return nil, err
}

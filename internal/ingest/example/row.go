package example

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

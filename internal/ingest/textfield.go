package ingest

import (
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
)

// unusedTextField returns a sentence if the option TextField has no effect.
func (b *build) unusedTextField() (none fault.Text) {
	field := b.opts.TextField
	switch {
	case field == "":
		return none
	case b.template != "":
		return fault.Textf("{text-field} %s has no effect with {template}, which names the fields itself", field)
	}
	formats, inputs, fieldless := b.formats(), 0, 0
	for f, n := range formats {
		inputs += n
		if source.Format(f).Kind() == source.Texts {
			fieldless += n
		}
	}
	switch {
	case fieldless == inputs:
		return fault.Textf("{text-field} %s has no effect: the sources are read as text without fields; "+
			"give their {format}", field)
	case fieldless > 0:
		return fault.Textf("{text-field} %s has no effect on %d of %d inputs, which are read as text without fields",
			field, fieldless, inputs)
	}
	return none
}

// unusedRecords returns a sentence if the option Records has no effect.
func (b *build) unusedRecords() (none fault.Text) {
	if b.opts.Records == "" {
		return none
	}
	for f := range b.formats() {
		if format := source.Format(f); format == source.JSON || format.Kind() == source.Various {
			return none
		}
	}
	return fault.Textf("{records} %s has no effect: no source is read as JSON", b.opts.Records)
}

// unusedCSV returns a sentence if options of CSV have no effect.
func (b *build) unusedCSV() (none fault.Text) {
	o := &b.opts
	if len(o.Columns) == 0 && o.Delimiter == "" {
		return none
	}
	for f := range b.formats() {
		if kind := source.Format(f).Kind(); kind == source.Rows || kind == source.Various {
			return none
		}
	}
	return fault.Textf("{columns} and {delimiter} have no effect: no source is read as CSV; give its {format}")
}

package ingest

import (
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/source"
)

// checkTextField returns an error for fields that cannot be parsed.
func (o Options) checkTextField() error {
	if o.TextField == "" {
		return nil
	}
	if _, err := example.ParseFieldPaths(o.TextField); err != nil {
		return fault.BadOption("text-field", o.TextField, "%v", err)
	}
	return nil
}

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

// delimiter returns the option Delimiter as a byte, 0 for the default. For a value that checkCSV
// refuses, the result has no meaning.
func (o *Options) delimiter() byte {
	switch o.Delimiter {
	case "":
		return 0
	case `\t`:
		return '\t'
	}
	return o.Delimiter[0]
}

// checkCSV returns an error for options of CSV that are invalid or do not fit the format.
func (o Options) checkCSV() error {
	if d := o.Delimiter; d != "" && d != `\t` && (len(d) != 1 || d[0] >= 0x80 || d[0] < ' ' && d[0] != '\t' ||
		d[0] == '"') {
		return fault.BadOption("delimiter", d, `must be one ASCII character, such as ; or |, or \t for a tab`)
	}
	kind := o.Format.Kind()
	csv := kind == source.Rows || kind == source.Various || o.Format == source.Chat
	for _, option := range []struct {
		name  fault.Option
		value string
		set   bool
	}{{"columns", strings.Join(o.Columns, ","), len(o.Columns) > 0}, {"delimiter", o.Delimiter, o.Delimiter != ""}} {
		if option.set && !csv {
			return fault.BadOption(option.name, option.value, "{format} %s has no columns; it is for CSV", o.Format)
		}
	}
	for i, name := range o.Columns {
		switch {
		case name == "":
			return fault.BadOption("columns", strings.Join(o.Columns, ","), "a name is empty")
		case slices.Contains(o.Columns[:i], name):
			return fault.BadOption("columns", strings.Join(o.Columns, ","), "%s is named twice", name)
		}
	}
	return nil
}

// checkRecords returns an error for paths that cannot be parsed, and for a path with a format that has none.
func (o Options) checkRecords() error {
	if o.Records == "" {
		return nil
	}
	if _, err := source.ParseRecords(o.Records); err != nil {
		return fault.BadOption("records", o.Records, "%v", err)
	}
	switch o.Format {
	case source.Auto, source.JSON, source.Chat, source.Tar:
		return nil
	}
	return fault.BadOption("records", o.Records, "{format} %s has no arrays of records; it is for JSON files", o.Format)
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

package build

import (
	"fmt"

	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/loader/build/example"
	"github.com/dsload/dsload/loader/build/source"
)

// checkTextField refuses a field that cannot be meant.
func (o Options) checkTextField() error {
	if o.TextField == "" {
		return nil
	}
	if _, err := example.ParseFieldPaths(o.TextField); err != nil {
		return loader.BadOption("text-field", o.TextField, err.Error())
	}
	return nil
}

// fieldlessFormats are those whose records have no fields.
var fieldlessFormats = []source.Format{source.Text, source.Document, source.WikiText}

// unusedTextField returns a sentence where the option TextField has no effect, else "".
func (b *build) unusedTextField() string {
	field := b.opts.TextField
	switch {
	case field == "":
		return ""
	case b.template != "":
		return fmt.Sprintf("`text-field` %s has no effect beside `template`, which names the fields itself", field)
	}
	formats, inputs, fieldless := b.formats(), 0, 0
	for _, n := range formats {
		inputs += n
	}
	for _, f := range fieldlessFormats {
		fieldless += formats[string(f)]
	}
	switch {
	case fieldless == inputs:
		return fmt.Sprintf("`text-field` %s has no effect: the sources are read as text without fields; give their `format`", field)
	case fieldless > 0:
		return fmt.Sprintf("`text-field` %s has no effect on %d of %d inputs, which are read as text without fields",
			field, fieldless, inputs)
	}
	return ""
}

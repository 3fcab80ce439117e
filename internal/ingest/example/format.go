package example

import (
	"cmp"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/tokenize/wellformed"
)

const defaultTextField = "text"

// FormatOptions configures a Formatter. The zero value of a field is its default.
type FormatOptions struct {
	// TextField names the JSON field or CSV column that holds the text, as ParseFieldPaths reads
	// it; several are joined with a blank line. Default "text".
	TextField string
	// Templates make the text. The default is Record.Template.
	Templates
	// Given is what people gave for the templates, such as the names of files, for errors.
	Given Templates
}

// Record describes the bytes passed to Format: text where Decoded is set, a row of CSV where there
// are columns, else a JSON object.
type Record struct {
	Decoded bool     // the bytes are the text already
	Columns []string // the row's values
	Comma   byte     // between its fields
	Typed   bool     // its numbers have the types of columns, decimals among them
	// Template is the built-in template that makes the text of a row where neither a template nor a
	// field is given, "" for none. The columns that it takes for lists are lists for any template.
	Template string
}

// Formatted is the text of a record. Reuse it: its buffers grow to the longest record.
type Formatted struct {
	Prompt    []byte // the text, or the prompt of the target
	Target    []byte
	HasTarget bool
	Replaced  int  // ill-formed parts that became U+FFFD
	Printed   bool // a template printed a list or an object
	// Field is the one of several fields that the text was taken from, "" where there is no choice.
	Field string
}

// A Formatter turns records into text. It is immutable.
type Formatter struct {
	opts     FormatOptions
	template *template // nil for none
	fields   []FieldPath
}

// NewFormatter parses the templates and the field. Errors match ErrTemplate or ErrUnknownField.
func NewFormatter(o FormatOptions) (*Formatter, error) {
	f := &Formatter{opts: o}
	var err error
	if f.fields, err = ParseFieldPaths(cmp.Or(o.TextField, defaultTextField)); err != nil {
		return nil, err
	}
	f.template, err = parseTemplates(o.Templates, o.Given)
	return f, err
}

// StreamedField returns the field whose string is all that is needed of a record, "" if more is
// needed.
func (f *Formatter) StreamedField() string {
	if f.template != nil || len(f.fields) != 1 || !f.fields[0].isPlain() {
		return ""
	}
	return f.fields[0].name
}

// Fields returns the names of the fields of records that may be used, nil for all. For a path inside a
// field it lists both the path and the field.
func (f *Formatter) Fields() []string {
	if f.template != nil {
		if f.template.whole {
			return nil
		}
		return slices.Clone(f.template.names)
	}
	return f.AlwaysUsed()
}

// AlwaysUsed returns the names of the fields that are used of each record. What a template uses is known once it was
// executed.
func (f *Formatter) AlwaysUsed() []string {
	if f.template != nil {
		return nil
	}
	var names []string
	for _, p := range f.fields {
		names = append(names, p.uses()...)
	}
	return names
}

// AnyOf returns those of Fields of which a record needs only one.
func (f *Formatter) AnyOf() (names []string) {
	for _, p := range f.fields {
		for i := 0; i < len(p.or) && f.template == nil; i++ {
			names = append(names, p.or[i].uses()...)
		}
	}
	return names
}

// HasTarget reports whether the template makes a target for every record.
func (f *Formatter) HasTarget() bool { return f.template != nil && len(f.template.parts) > 1 }

// OverheadBytes returns how many bytes a template may add to three times a record's.
func (f *Formatter) OverheadBytes() int64 {
	if f.template == nil {
		return 0
	}
	return f.template.overhead
}

// ScratchBytes returns the most memory for formatting a record of that size besides the record and
// its text: for what a template computes (I4), and for the fields that it sees. Without a template
// it is 0.
func (f *Formatter) ScratchBytes(recordBytes int64) int64 {
	if f.template == nil {
		return 0
	}
	n := int64(len(f.template.parts))*f.template.limits(recordBytes).Bytes + values.Bytes(recordBytes)
	if !f.template.isBuiltin {
		n += stackBytes
	}
	return n
}

// ResidentBytes returns the memory of the parsed template.
func (f *Formatter) ResidentBytes() (n int64) {
	if f.template != nil {
		for _, part := range f.template.parts {
			n += part.ResidentBytes()
		}
	}
	return n
}

// A Worker formats records, one at a time, with its own buffers.
type Worker struct {
	f       *Formatter
	clean   []byte // the record, with ill-formed parts replaced
	fields  csvFields
	scan    jsonFinder
	decode  values.Decoder
	columns columnIndex

	unused    *Unused    // nil where nobody asks
	rendering *rendering // nil until it is needed
	done      <-chan struct{}
}

// columnIndex holds the indexes of the columns of the text in a header: for each field, those of which the first with
// a value counts, -1 for one that is not there.
type columnIndex struct {
	of   []string
	text [][]int
}

// NewWorker returns a worker of this formatter.
func (f *Formatter) NewWorker() *Worker {
	return &Worker{f: f, decode: values.Decoder{Options: decodedFields}}
}

// Note makes the worker note in u the fields of each record that it does not use. It returns w.
func (w *Worker) Note(u *Unused) *Worker {
	w.unused, w.scan.unused = u, u
	return w
}

// StopAt ends a running template with ErrStopped when done is closed. It returns w.
func (w *Worker) StopAt(done <-chan struct{}) *Worker {
	w.done = done
	return w
}

// Format makes the text of a record in dst. Errors match ErrMalformed, ErrUnknownField, ErrTemplate
// or ErrTooLarge; they describe the record, and the caller adds where it is. ErrStopped does not
// concern the record.
func (w *Worker) Format(dst *Formatted, rec Record, data []byte) error {
	dst.Prompt, dst.Target, dst.HasTarget, dst.Replaced = dst.Prompt[:0], dst.Target[:0], false, 0
	dst.Field, dst.Printed = "", false
	w.unused.Begin()
	f := w.f
	if rec.Decoded && f.template == nil {
		dst.Prompt, dst.Replaced = wellformed.Append(dst.Prompt, data)
		return nil
	}
	size := len(data)
	if !wellformed.Valid(data) {
		w.clean, dst.Replaced = wellformed.Append(w.clean[:0], data)
		data = w.clean
	}
	if rec.Columns != nil {
		if err := w.parseRow(rec, data); err != nil {
			return err
		}
	}
	if f.template != nil || rec.Template != "" && f.opts.TextField == "" {
		return w.render(dst, rec, data, size)
	}
	if rec.Columns == nil {
		return w.jsonText(dst, data)
	}
	w.noteColumns(rec, nil)
	return w.csvText(dst, rec)
}

func (w *Worker) parseRow(rec Record, data []byte) error {
	err := w.fields.parse(data, rec.Comma, len(rec.Columns))
	if err != nil && len(rec.Columns) == 1 {
		return fault.Of(ErrMalformed, "%v; the only column is %q, which may be a line above the header, or have "+
			"another {delimiter}", err, values.Shorten(rec.Columns[0]))
	}
	if err == nil {
		w.locate(rec.Columns)
	}
	return err
}

// render makes the text of a record by a template.
func (w *Worker) render(dst *Formatted, rec Record, data []byte, size int) error {
	r := w.rendering
	if r == nil {
		t := w.f.template
		if t == nil {
			t = defaultRecipe()
		}
		r = &rendering{template: t, Variables: t.parts[0].NewVariables()}
		w.rendering = r
	}
	r.begin()
	w.decode.Clean()
	w.decode.Begin(size)
	w.decode.Decimals = rec.Typed
	var err error
	switch {
	case rec.Decoded:
		w.readText(r, data)
	case rec.Columns == nil:
		err = values.Problem(w.readObject(r, data))
	default:
		err = w.readRow(r, rec)
	}
	if err != nil {
		return err
	}
	limit := 3*size + int(r.overhead)
	if err := w.execute(dst, r, size, limit); err != nil {
		return r.explain(err, rec, func() []string {
			switch {
			case rec.Decoded:
				return []string{defaultTextField}
			case rec.Columns != nil:
				return rec.Columns
			}
			return FieldNames(data)
		})
	}
	if w.unused != nil && rec.Columns != nil {
		w.noteColumns(rec, r)
	} else if w.unused != nil && !rec.Decoded {
		r.unread(func(name string) { w.unused.Field(name, true) })
	}
	return nil
}

// csvText joins the columns that hold the text, without empty ones.
func (w *Worker) csvText(dst *Formatted, rec Record) error {
	for i, choice := range w.columns.text {
		column := -1
		for _, c := range choice {
			if c >= 0 && (column < 0 || len(w.fields.at(column)) == 0 && len(w.fields.at(c)) > 0) {
				column = c
			}
		}
		if column < 0 {
			err := missingColumn(w.f.fields[i].name, rec.Columns, &w.fields)
			if len(w.columns.text) > 1 {
				err = missingPart(err)
			}
			return err
		}
		if len(choice) > 1 {
			dst.Field = rec.Columns[column]
		}
		text := w.fields.at(column)
		if len(text) > 0 && len(dst.Prompt) > 0 {
			dst.Prompt = append(dst.Prompt, fieldSeparator...)
		}
		dst.Prompt = append(dst.Prompt, text...)
	}
	return nil
}

func (w *Worker) jsonText(dst *Formatted, data []byte) error {
	var lone int
	var err error
	w.scan.chosen = ""
	if fields := w.f.fields; len(fields) == 1 {
		dst.Prompt, lone, err = w.scan.appendField(dst.Prompt, data, &fields[0])
	} else {
		dst.Prompt, lone, err = w.scan.appendJoined(dst.Prompt, data, fields)
	}
	dst.Replaced += lone
	dst.Field = w.scan.chosen
	return err
}

// noteColumns notes the columns of a row that have a value which nothing uses. r is the template, or nil.
func (w *Worker) noteColumns(rec Record, r *rendering) {
	for i, name := range rec.Columns {
		used := r != nil && (r.used[i] >= 0 && r.Read(r.used[i]) || r.record != nil && r.record.WasRead(name))
		w.unused.Field(name, !used && len(w.fields.at(i)) > 0)
	}
}

// locate finds the columns of the text, once per header.
func (w *Worker) locate(columns []string) {
	c := &w.columns
	if len(c.of) == len(columns) && (len(columns) == 0 || &c.of[0] == &columns[0]) {
		return
	}
	c.of, c.text = columns, c.text[:0]
	for i := range w.f.fields {
		p := &w.f.fields[i]
		choice := []int{slices.Index(columns, p.name)}
		for k := 0; k < len(p.or) && choice[0] < 0; k++ {
			choice = append(choice, slices.Index(columns, p.or[k].name))
		}
		c.text = append(c.text, choice)
	}
	if w.rendering != nil {
		w.rendering.columns = nil
	}
}

package example

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/tokenize/wellformed"
)

const defaultTextField = "text"

// FormatOptions configures a Formatter. The zero value of a field is its default.
type FormatOptions struct {
	// TextField names the JSON field or CSV column that holds the text, as ParseFieldPaths reads
	// it; several are joined with a blank line. Default "text".
	TextField string
	// Template is the name of a built-in template or the text of a Go text/template. The default is
	// Record.Template.
	Template string
	// TemplateName is the file of Template, for errors. Default "template".
	TemplateName string
}

// Record describes the bytes passed to Format: text where Decoded is set, a row of CSV where there
// are columns, else a JSON object.
type Record struct {
	Decoded bool     // the bytes are the text already
	Columns []string // of a row
	Comma   byte     // between its fields
	// Template is the built-in template that makes the text of a row where neither a template nor a
	// field is given, "" for none. The columns that it takes for lists are lists for any template.
	Template string
}

// Formatted is the text of a record. Reuse it: its buffers grow to the longest record.
type Formatted struct {
	Prompt    []byte // the text, or the prompt of the target
	Target    []byte
	HasTarget bool
	Replaced  int // ill-formed parts that became U+FFFD
}

// A Formatter turns records into text. It is immutable.
type Formatter struct {
	opts     FormatOptions
	builtin  *builtin
	template *userTemplate
	wanted   *fieldSet // by the template
	fields   []FieldPath
}

// NewFormatter parses the template and the field. Errors match ErrTemplate or ErrUnknownField.
func NewFormatter(o FormatOptions) (*Formatter, error) {
	f := &Formatter{opts: o}
	var err error
	if f.fields, err = ParseFieldPaths(cmp.Or(o.TextField, defaultTextField)); err != nil {
		return nil, err
	}
	if o.TemplateName == "" {
		f.opts.TemplateName = "template"
	}
	if o.Template == "" {
		return f, nil
	}
	if f.builtin = findBuiltin(o.Template); f.builtin != nil {
		f.template, err = parseTemplate(f.builtin.name, f.builtin.body)
	} else {
		f.template, err = parseTemplate(f.opts.TemplateName, o.Template)
	}
	if err == nil && f.builtin == nil {
		f.wanted = wantedFields(o.Template)
	} else if err == nil {
		f.wanted = wantedFields(f.builtin.body)
	}
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

// Fields returns the names of the fields of records that are used, nil for all. For a path inside a
// field it lists both the path and the field.
func (f *Formatter) Fields() []string {
	if f.template != nil {
		if f.wanted.all {
			return nil
		}
		return slices.Clone(f.wanted.names)
	}
	var names []string
	for _, p := range f.fields {
		names = append(names, p.name)
		if !p.isPlain() {
			names = append(names, p.Root())
		}
	}
	return names
}

// HasTarget reports whether the template makes a target for every record.
func (f *Formatter) HasTarget() bool { return f.template != nil && f.template.target != "" }

// OverheadBytes returns how many bytes a template may add to three times a record's.
func (f *Formatter) OverheadBytes() int64 {
	switch {
	case f.template == nil:
		return 0
	case f.builtin != nil:
		return builtinOverhead
	}
	return int64(4*len(f.opts.Template)) + userOverhead
}

const (
	builtinOverhead = 64 // the fixed text of a built-in template
	userOverhead    = 4 << 10
)

// ScratchBytes returns the most memory for formatting a record of that size besides the record and
// its text: for what a template computes (I5), for the decoded fields that it sees, and for the
// text of a field while it is printed. Without a template it is 0.
func (f *Formatter) ScratchBytes(recordBytes int64) int64 {
	if f.template == nil {
		return 0
	}
	return f.template.allowance(recordBytes).bytes + f.decodedBytes(recordBytes) + 2*recordBytes
}

// ResidentBytes returns the memory of the parsed template.
func (f *Formatter) ResidentBytes() int64 {
	if f.template == nil {
		return 0
	}
	return int64(parsedFactor*f.template.actionBytes + 4*len(f.opts.Template))
}

// parsedFactor is the memory of a parsed action per byte of its source.
const parsedFactor = 256

// A Worker formats records, one at a time, with its own buffers.
type Worker struct {
	f       *Formatter
	clean   []byte // the record, with ill-formed parts replaced
	fields  csvFields
	lists   [3][]byte // decoded strings of a recipe's lists
	ends    [3][]int
	scan    jsonFinder
	decode  jsonDecoder
	columns columnIndex
	values  []foundValue // of the fields of a direct template

	unused   *Unused        // nil where nobody asks
	template *boundTemplate // nil until it is needed
	done     <-chan struct{}
}

// columnIndex holds the indexes of the wanted columns in a header.
type columnIndex struct {
	of    []string
	text  []int
	known [3]int // title, ingredients, directions
	// direct holds the columns of the fields of a direct template, -1 for one that is not there once.
	direct []int
}

// NewWorker returns a worker of this formatter.
func (f *Formatter) NewWorker() *Worker { return &Worker{f: f} }

// Note makes the worker note in u the fields of each record that it does not use. It returns w.
func (w *Worker) Note(u *Unused) *Worker {
	w.unused, w.scan.unused, w.decode.unused = u, u, u
	return w
}

// StopAt ends a running template with ErrStopped when done is closed. It returns w.
func (w *Worker) StopAt(done <-chan struct{}) *Worker {
	w.done, w.template = done, nil
	return w
}

// Format makes the text of a record in dst. Errors match ErrMalformed, ErrUnknownField, ErrTemplate
// or ErrTooLarge; they describe the record, and the caller adds where it is. ErrStopped does not
// concern the record.
func (w *Worker) Format(dst *Formatted, rec Record, data []byte) error {
	dst.Prompt, dst.Target, dst.HasTarget, dst.Replaced = dst.Prompt[:0], dst.Target[:0], false, 0
	w.unused.Begin()
	f := w.f
	if rec.Decoded && f.template == nil {
		dst.Prompt, dst.Replaced = wellformed.Append(dst.Prompt, data)
		return nil
	}
	size := len(data)
	limit := 3*size + int(f.OverheadBytes())
	if !wellformed.Valid(data) {
		w.clean, dst.Replaced = wellformed.Append(w.clean[:0], data)
		data = w.clean
	}
	if f.template != nil && f.template.direct != nil && rec.Columns == nil {
		inRecord := w.directJSON
		if rec.Decoded {
			inRecord = w.directDecoded
		}
		if ok, err := inRecord(dst, data, limit); ok {
			return err
		}
	}
	switch {
	case rec.Decoded:
		return w.execute(dst, map[string]any{"text": string(data)}, size, limit)
	case rec.Columns == nil && f.template == nil:
		return w.jsonText(dst, data)
	case rec.Columns == nil:
		fields, lone, err := w.decode.fields(data, f.wanted)
		if err != nil {
			return err
		}
		dst.Replaced += lone
		return w.execute(dst, fields, size, limit)
	}
	if err := w.fields.parse(data, rec.Comma, len(rec.Columns)); err != nil {
		if len(rec.Columns) == 1 {
			return fault.Of(ErrMalformed, "%v; the only column is %q, which may be a line above the header, or have "+
				"another {delimiter}", err, printable(rec.Columns[0]))
		}
		return err
	}
	w.locate(rec.Columns)
	if w.unused != nil {
		w.noteColumns(rec)
	}
	switch {
	case f.builtin != nil || rec.Template != "" && f.template == nil && f.opts.TextField == "":
		return w.recipe(dst)
	case f.template != nil:
		if f.template.direct != nil && rec.Template == "" {
			if ok, err := w.directColumns(dst, limit); ok {
				return err
			}
		}
		fields, err := w.csvMap(rec, size)
		if err != nil {
			return err
		}
		return w.execute(dst, fields, size, limit)
	}
	return w.csvText(dst, rec)
}

// csvText joins the columns that hold the text, without empty ones.
func (w *Worker) csvText(dst *Formatted, rec Record) error {
	for i, column := range w.columns.text {
		if column < 0 {
			err := missingColumn(w.f.fields[i].name, rec.Columns, &w.fields)
			if len(w.columns.text) > 1 {
				err = missingPart(err)
			}
			return err
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
	if fields := w.f.fields; len(fields) == 1 {
		dst.Prompt, lone, err = w.scan.appendField(dst.Prompt, data, &fields[0])
	} else {
		dst.Prompt, lone, err = w.scan.appendJoined(dst.Prompt, data, fields)
	}
	dst.Replaced += lone
	return err
}

// noteColumns notes the columns of a row that nothing uses.
func (w *Worker) noteColumns(rec Record) {
	recipe := w.f.template == nil && rec.Template != "" && w.f.opts.TextField == ""
	for i, name := range rec.Columns {
		used := recipe && slices.Contains(recipeColumns[:], name)
		w.unused.Field([]byte(name), !used && len(w.fields.at(i)) > 0)
	}
}

// locate finds the wanted columns, once per header.
func (w *Worker) locate(columns []string) {
	c := &w.columns
	if len(c.of) == len(columns) && (len(columns) == 0 || &c.of[0] == &columns[0]) {
		return
	}
	c.of, c.text = columns, c.text[:0]
	for i := range w.f.fields {
		c.text = append(c.text, slices.Index(columns, w.f.fields[i].name))
	}
	for i, name := range recipeColumns {
		c.known[i] = slices.Index(columns, name)
	}
	if w.f.template == nil || w.f.template.direct == nil {
		return
	}
	c.direct = c.direct[:0]
	for _, name := range w.f.template.direct.fields {
		i := slices.Index(columns, name)
		if i >= 0 && slices.Contains(columns[i+1:], name) {
			i = -1
		}
		c.direct = append(c.direct, i)
	}
}

// csvMap returns the fields that a template names by column. If one is missing, it adds the names of some
// others, as jsonDecoder.fields does, with the same bound on memory.
func (w *Worker) csvMap(rec Record, size int) (map[string]any, error) {
	room := w.f.decodedBytes(int64(size))
	fields := make(map[string]any, min(len(rec.Columns), maxFieldsTold))
	var others, lists []string
	if b := findBuiltin(rec.Template); b != nil {
		lists = b.lists
	}
	for i, name := range rec.Columns {
		if !w.f.wanted.has(name) {
			if len(others) < maxFieldsTold {
				others = append(others, name)
			}
			continue
		}
		value := w.fields.at(i)
		list := slices.Contains(lists, name)
		room -= int64(memberCost + stringCost + len(value))
		if list {
			room -= valueCost * int64(bytes.Count(value, []byte(`"`))/2)
		}
		if room < 0 {
			return nil, fault.Of(ErrTooLarge, "the columns that the template uses take more than %d bytes of memory, "+
				"%d times the record; it is made of very small values",
				w.f.decodedBytes(int64(size)), decodedPerByte)
		}
		fields[name] = string(value)
		if list {
			text, ends, err := appendStrings(nil, nil, value)
			if err != nil {
				return nil, fault.Of(ErrMalformed, "column %s: %v", name, err)
			}
			fields[name] = stringList(text, ends)
		}
	}
	if slices.ContainsFunc(w.f.wanted.names, func(name string) bool { _, ok := fields[name]; return !ok }) {
		for _, name := range others {
			fields[name] = ""
		}
	}
	return fields, nil
}

func stringList(text []byte, ends []int) []string {
	list := make([]string, len(ends))
	start := 0
	for i, end := range ends {
		list[i], start = string(text[start:end]), end
	}
	return list
}

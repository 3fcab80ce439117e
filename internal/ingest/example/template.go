package example

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// Templates make the text of records. Text alone makes documents, or pairs by its blocks prompt and target; Prompt
// and Target make pairs. Each is the text of a Jinja template; Text may also be the name of a built-in one.
type Templates struct{ Text, Prompt, Target string }

// IsZero reports whether there is none.
func (t Templates) IsZero() bool { return t == Templates{} }

const (
	// The bounds of one execution. They depend only on the record and the template, since a build's output must not
	// depend on the memory cap.
	templateSteps        = 4 << 20
	templateStepsPerByte = 32
	templateBytes        = 1 << 20
	templateBytesPerByte = 8
	// stackBytes is the memory of the deepest nesting of an execution.
	stackBytes = 2 << 20

	builtinOverhead = 64 // the fixed text of a built-in template
	userOverhead    = 4 << 10
)

// wholeRecord is the variable that holds all fields, for names that are not names in Jinja.
const wholeRecord = "record"

// A template is the parsed form of Templates. A template sees only the record's fields: no files, no environment, no
// clock. It is immutable.
type template struct {
	parts     []*jinja.Template // those of the text, or of prompt and target
	names     []string          // sorted: the variables that they read, which they share
	whole     bool              // they read wholeRecord
	isBuiltin bool
	lists     []string // columns that hold JSON lists
	overhead  int64    // bytes of text beyond three times the record's
}

// parseTemplates returns nil where there is no template. given is what people typed, for errors.
func parseTemplates(t, given Templates) (*template, error) {
	if t.Prompt == "" && t.Target == "" {
		return parseText(t.Text, given.Text)
	}
	if t.Text != "" {
		return nil, badTemplate("template", given.Text, "{prompt} and {target} make pairs without it; give it, or these")
	}
	if t.Prompt == "" || t.Target == "" {
		has, lacks := fault.Option("prompt"), fault.Option("target")
		if t.Prompt == "" {
			has, lacks = lacks, has
		}
		return nil, badTemplate(has, "", "it makes a pair together with %v; give that too, or a {template} for documents",
			lacks)
	}
	prompt, err := parseTemplate("prompt", t.Prompt, given.Prompt, jinja.Parse)
	if err != nil {
		return nil, err
	}
	target, err := parseTemplate("target", t.Target, given.Target, prompt.Parse)
	if err != nil {
		return nil, err
	}
	if prompt.IsConstant() && target.IsConstant() {
		return nil, noField("prompt", given.Prompt)
	}
	return newTemplate(t, prompt, target), nil
}

func parseText(text, given string) (*template, error) {
	if text == "" {
		return nil, nil
	}
	b := findBuiltin(text)
	if b != nil {
		text = b.body
	}
	all, err := parseTemplate("template", text, given, jinja.Parse)
	if err != nil {
		return nil, err
	}
	prompt, target := all.Block("prompt"), all.Block("target")
	var t *template
	switch {
	case prompt == nil && target == nil:
		t = newTemplate(Templates{Text: text}, all)
	case prompt == nil || target == nil:
		return nil, badTemplate("template", given, "it has one of the blocks prompt and target, which make a pair together; "+
			"write both at its top, or a template without them for a document")
	case all.WritesOutside():
		return nil, badTemplate("template", given, "it has text outside of the blocks prompt and target, which would be "+
			"left out; move it into one of them")
	default:
		t = newTemplate(Templates{Text: text}, prompt, target)
	}
	if all.IsConstant() {
		return nil, noField("template", given)
	}
	if b != nil {
		t.isBuiltin, t.lists, t.overhead = true, b.lists, builtinOverhead
	}
	return t, nil
}

func parseTemplate(option fault.Option, text, given string, parse func(string) (*jinja.Template, error)) (*jinja.Template,
	error) {
	if strings.TrimSpace(text) == "" {
		return nil, badTemplate(option, given, "it is empty; write a template into it, such as {{ title }}: {{ text }}")
	}
	if !utf8.ValidString(text) {
		return nil, badTemplate(option, given, "it is not UTF-8; save it in that encoding")
	}
	if isGoTemplate(text) {
		return nil, goTemplateError(option, text, given)
	}
	t, err := parse(text)
	if err != nil {
		return nil, badTemplate(option, given, "%v", err)
	}
	return t, nil
}

// badTemplate returns the error of an option that gives a template. The text of one is not repeated.
func badTemplate(option fault.Option, given, format string, args ...any) error {
	err := fault.Error{Class: fault.Usage, Option: option, What: fault.Textf(format, args...), Err: ErrTemplate}
	if given != "" && !isTemplateText(given) {
		err.Value = given
	}
	return &err
}

func noField(option fault.Option, given string) error {
	return badTemplate(option, given,
		"it names no field of a record, so that all documents would be the same; write a field as {{ title }}")
}

func newTemplate(t Templates, parts ...*jinja.Template) *template {
	names := parts[0].Names()
	return &template{parts: parts, names: names, whole: slices.Contains(names, wholeRecord),
		overhead: 4*int64(len(t.Text)+len(t.Prompt)+len(t.Target)) + userOverhead}
}

func (t *template) limits(recordBytes int64) jinja.Limits {
	return jinja.Limits{Steps: templateSteps + templateStepsPerByte*recordBytes,
		Bytes: templateBytes + templateBytesPerByte*recordBytes}
}

// A rendering is a template with the fields of a worker's record: its variables are those of the names.
type rendering struct {
	*template
	*jinja.Variables
	columns []int       // where each name is in a header, -1 for none
	used    []int       // for each column the place of its name, -1 for none
	record  *jinja.Dict // all fields, if they are asked for
	scratch jinja.Scratch
}

// begin drops the fields of the last record.
func (r *rendering) begin() {
	r.record = nil
	r.Clear()
}

// putAll sets the fields of a record of which all are asked for.
func (r *rendering) putAll(record *jinja.Dict) {
	r.record = record
	for i, name := range r.names {
		if value, ok := record.Peek(name); ok {
			r.Set(i, value)
		} else if name == wholeRecord {
			r.Set(i, record)
		}
	}
}

// unread calls f with the fields that have a value and that the template did not read.
func (r *rendering) unread(f func(name string)) {
	if r.record != nil {
		r.record.Unread(func(name string, value any) {
			if i, ok := slices.BinarySearch(r.names, name); jinja.HasValue(value) && !(ok && r.Read(i)) {
				f(name)
			}
		})
		return
	}
	for i, name := range r.names {
		if value, ok := r.Get(i); ok && jinja.HasValue(value) && !r.Read(i) {
			f(name)
		}
	}
}

// execute renders prompt and target, together at most limit bytes.
func (w *Worker) execute(dst *Formatted, r *rendering, recordBytes, limit int) error {
	left := int64(limit)
	r.scratch.Printed = false
	for i, part := range r.parts {
		text := &dst.Prompt
		if i == 1 {
			text, dst.HasTarget = &dst.Target, true
		}
		limits := r.limits(int64(recordBytes))
		limits.Output = left
		var err error
		*text, err = part.RenderVariables(*text, r.Variables, jinja.Options{Limits: limits, Done: w.done, Scratch: &r.scratch,
			Strict: true})
		if err != nil {
			return err
		}
		left -= int64(len(*text))
	}
	dst.Replaced += w.decode.Lone
	dst.Printed = r.scratch.Printed
	return nil
}

// explain says why a template failed on a record, which has the fields.
func (r *rendering) explain(err error, rec Record, fields func() []string) error {
	var missing *jinja.UndefinedError
	var raised *jinja.RaisedError
	reason := strings.Clone(err.Error()) // it may share the memory of the record
	switch {
	case errors.Is(err, jinja.ErrStopped):
		return ErrStopped
	case errors.As(err, &missing) && missing.Name != "":
		kind, all := "field", "the record has"
		if rec.Columns != nil {
			kind, all = "column", "the columns are"
		}
		err = fault.Of(ErrTemplate, "no %s %q, which the template uses; %s %s", kind, missing.Name, all,
			clip(strings.Join(fields(), ", "), maxExplained))
		if r.isBuiltin {
			return err
		}
		return fault.Errorf("%w; where some lack it, write {{ %s | default('') }} or {%% if %[2]s is defined %%}", err,
			missing.Name)
	case errors.As(err, &missing):
		return fault.Of(ErrTemplate, "the template fails: %s; where some lack it, write {{ … | default('') }} or "+
			"{%% if … is defined %%}", reason)
	case errors.Is(err, jinja.ErrNull):
		return fault.Of(ErrTemplate, "the template writes a null%s", r.nulls())
	case errors.As(err, &raised):
		return fault.Of(ErrTemplate, "the template refuses the record: %s", reason)
	case errors.Is(err, jinja.ErrLimit):
		return fault.Of(ErrTooLarge, "%s", clip(reason, maxExplained))
	case rec.Columns != nil && strings.Contains(reason, "str"):
		reason += "; columns of CSV hold text: write {{ n | int }} or {{ n | float }} for a number"
	}
	return fault.Of(ErrTemplate, "the template fails: %s", clip(reason, maxExplained))
}

// nulls names the fields that are null, and says how a template tests for one. It does not name nulls inside fields.
func (r *rendering) nulls() string {
	var null []string
	for i, name := range r.names {
		if value, ok := r.Get(i); ok && value == nil {
			null = append(null, name)
		}
	}
	if len(null) == 0 {
		return "; write {{ … | default('', true) }}, or test for it with {% if … is not none %}"
	}
	return fmt.Sprintf(" (null in this record: %s); write {{ %s | default('', true) }}, or test for it with "+
		"{%% if %[2]s is not none %%}",
		strings.Join(null, ", "), null[0])
}

// maxExplained bounds how much of a record a message repeats.
const maxExplained = 1 << 10

// clip shortens a text to about n bytes and says so.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:n], ""), len(s))
}

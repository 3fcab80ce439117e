package example

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// A userTemplate is a parsed text/template. Its body, or the template that it defines as "prompt",
// makes the prompt; the template that it defines as "target", if any, makes the target. A template
// sees only the record's fields: no files, no environment, no clock.
type userTemplate struct {
	set            *template.Template
	prompt, target string  // names in set; target or ""
	makesStrings   bool    // it calls functions that make strings
	actionBytes    int     // see actionBytes
	direct         *direct // nil if it is more than text and fields
}

// templateFuncs lists the functions besides text/template's own. Workers bind metered versions.
var templateFuncs = template.FuncMap{
	"join":  strings.Join,
	"trim":  strings.TrimSpace,
	"lower": strings.ToLower,
	"upper": strings.ToUpper,
	"inc":   func(i int) int { return i + 1 },
}

// MaxTemplateBytes is the length of the longest template in bytes.
const MaxTemplateBytes = 1 << 20

func parseTemplate(name, body string) (*userTemplate, error) {
	if len(body) > MaxTemplateBytes {
		return nil, fault.Of(ErrTemplate, "%s: %d bytes are too long for a template, which may have %d", name,
			len(body), MaxTemplateBytes)
	}
	actions, parens := actionBytes(body)
	if actions > maxActionBytes {
		return nil, fault.Of(ErrTemplate, "%s: %d bytes of actions are too many for a template, "+
			"which may have %d between {{ and }}", name, actions, maxActionBytes)
	}
	if parens > maxTemplateNesting {
		return nil, fault.Of(ErrTemplate, "%s: %d parentheses within each other, at most %d are allowed", name,
			parens, maxTemplateNesting)
	}
	t, err := template.New(name).Funcs(templateFuncs).Option("missingkey=error").Parse(body)
	if err != nil {
		return nil, fault.Of(ErrTemplate, "%s", unparsed(err))
	}
	if err := checkDefinitions(t, name, actions); err != nil {
		return nil, err
	}
	u := &userTemplate{set: t, prompt: name, actionBytes: actions}
	if t.Lookup("prompt") != nil {
		u.prompt = "prompt"
	}
	if t.Lookup("target") != nil {
		u.target = "target"
	}
	if !hasText(t.Lookup(u.prompt)) {
		return nil, fault.Of(ErrTemplate, "%s:1: it is empty; write a body, or {{define \"prompt\"}}", name)
	}
	if len(t.Templates()) == 1 {
		u.direct = directOf(t.Root) // before it is instrumented
	}
	for _, defined := range t.Templates() {
		if defined.Tree == nil {
			continue
		}
		found, err := instrument(defined.Tree)
		if err != nil {
			return nil, err
		}
		u.makesStrings = u.makesStrings || found.makesStrings
	}
	return u, nil
}

func hasText(t *template.Template) bool {
	return t != nil && t.Tree != nil && !parse.IsEmptyTree(t.Root)
}

// checkDefinitions refuses a template of which a part would be left out without a word, or that writes the
// same for every record.
func checkDefinitions(t *template.Template, name string, actions int) error {
	prompt, target := t.Lookup("prompt") != nil, t.Lookup("target") != nil
	switch {
	case prompt && !target:
		return fault.Of(ErrTemplate, "%s:1: it defines \"prompt\" and no \"target\"; define both, or write a body "+
			"without definitions for a document", name)
	case prompt && hasText(t.Lookup(name)):
		return fault.Of(ErrTemplate, "%s:1: it has text outside of \"prompt\" and \"target\", which would be left out; "+
			"move it into one of them", name)
	case actions == 0 && hasText(t.Lookup(name)):
		return fault.Of(ErrTemplate, "%s:1: it names no field, so that all documents would be the same; "+
			"write a field as {{.title}}", name)
	}
	return nil
}

// noFunction matches the name of a function that text/template does not know.
var noFunction = lazy.Regexp(`function "(\w+)" not defined$`)

// unparsed says why a template cannot be parsed. A field without its dot looks like a function.
func unparsed(err error) string {
	s := strings.TrimPrefix(err.Error(), "template: ")
	switch found := noFunction().FindStringSubmatch(s); {
	case found != nil:
		s += fmt.Sprintf("; write a field with a dot before it: {{.%s}}", found[1])
	case strings.Contains(s, "bad character"), strings.Contains(s, "in operand"):
		s += "; write a field whose name has other characters than letters, digits and _ as {{index . \"a-b\"}}, " +
			"and an element of a list as {{index .list 0}}"
	}
	return s
}

// allowance returns what an execution may take for a record.
func (u *userTemplate) allowance(recordBytes int64) meterAllowance {
	perByte := int64(meterPerByte)
	if u.makesStrings {
		perByte = meterPerByteText
	}
	return meterAllowance{steps: meterSteps + meterStepsPerByte*recordBytes, bytes: meterBytes + perByte*recordBytes}
}

// boundTemplate is a template with the meter of one worker.
type boundTemplate struct {
	meter          meter
	prompt, target *template.Template
}

// bind returns the template with its functions bound to a new meter. The parsed bodies are shared.
func (u *userTemplate) bind(done <-chan struct{}) (*boundTemplate, error) {
	set, err := u.set.Clone()
	if err != nil {
		return nil, fault.Of(ErrTemplate, "%v", err)
	}
	b := &boundTemplate{meter: meter{done: done}}
	set.Funcs(b.meter.funcs())
	b.prompt = set.Lookup(u.prompt)
	if u.target != "" {
		b.target = set.Lookup(u.target)
	}
	return b, nil
}

// execute renders prompt and target, together at most limit bytes.
func (w *Worker) execute(dst *Formatted, fields map[string]any, recordBytes, limit int) error {
	if w.template == nil {
		var err error
		if w.template, err = w.f.template.bind(w.done); err != nil {
			return err
		}
	}
	w.template.meter.begin(w.f.template.allowance(int64(recordBytes)))
	left := limit
	for i, t := range []*template.Template{w.template.prompt, w.template.target} {
		if t == nil {
			continue
		}
		text := &dst.Prompt
		if i == 1 {
			text, dst.HasTarget = &dst.Target, true
		}
		out := boundedWriter{data: *text, left: left}
		err := t.Execute(&out, fields)
		*text, left = out.data, out.left
		if err != nil {
			return explainFailure(err, limit, fields)
		}
	}
	return w.validate(dst, limit)
}

// explainFailure returns why an execution failed: it exceeded a bound, it was stopped, or the
// template does not fit the record.
func explainFailure(err error, limit int, fields map[string]any) error {
	var bounded *fault.Error
	switch {
	case errors.Is(err, ErrStopped):
		return ErrStopped
	case errors.Is(err, errNull):
		return fault.Of(ErrTemplate, "the template prints a null%s", nullFields(fields))
	case errors.As(err, &bounded):
		return bounded
	case errors.Is(err, ErrTooLarge):
		return fault.Of(ErrTooLarge, "the template writes more than %d bytes for this record", limit)
	}
	return fault.Of(ErrTemplate, "%s", explain(err, fields))
}

// nullFields names the fields that are null, and says how a template tests for one. It does not
// name nulls inside fields.
func nullFields(fields map[string]any) string {
	var null []string
	for _, name := range sortedKeys(fields) {
		if fields[name] == nil {
			null = append(null, name)
		}
	}
	if len(null) == 0 {
		return "; test for it with {{if …}}"
	}
	return fmt.Sprintf(" (null in this record: %s); test for it with {{if .%s}}…{{end}}", strings.Join(null, ", "),
		null[0])
}

// validate repairs UTF-8 that a template made ill-formed by slicing inside a character.
func (w *Worker) validate(dst *Formatted, limit int) error {
	for _, text := range []*[]byte{&dst.Prompt, &dst.Target} {
		if !wellformed.Valid(*text) {
			var replaced int
			w.clean, replaced = wellformed.Append(w.clean[:0], *text)
			*text = append((*text)[:0], w.clean...)
			dst.Replaced += replaced
		}
	}
	if len(dst.Prompt)+len(dst.Target) > limit {
		return fault.Of(ErrTooLarge, "the template writes more than %d bytes for this record", limit)
	}
	return nil
}

func explain(err error, fields map[string]any) string {
	s := strings.TrimPrefix(err.Error(), "template: ")
	missing, number := strings.Contains(s, "map has no entry"), strings.Contains(s, "json.Number")
	list := strings.Contains(s, "got []interface {}")
	s = clip(weighedArg().ReplaceAllString(s, "$1"), maxExplained)
	switch {
	case missing:
		s += "; the fields are " + clip(strings.Join(sortedKeys(fields), ", "), maxExplained)
	case number:
		s += "; numbers of a record are texts in a template: write {{if eq .n \"3\"}}, and {{.n}} or %s to print one"
	case list:
		s += "; go through a list with {{range .list}}{{.}}{{end}}"
	}
	return s
}

// weighedArg matches an argument as instrument rewrote it.
var weighedArg = lazy.Regexp(`\((\S+) \| ` + weighedFunc + `\)`)

// maxExplained bounds how much of a record a message repeats.
const maxExplained = 1 << 10

// clip shortens a text to about n bytes and says so.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(s[:n], ""), len(s))
}

// A boundedWriter appends until its limit is reached.
type boundedWriter struct {
	data []byte
	left int
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, ErrTooLarge
	}
	w.left -= len(p)
	w.data = append(w.data, p...)
	return len(p), nil
}

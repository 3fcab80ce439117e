package example

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// A userTemplate is a parsed text/template. Its body, or what it defines as "prompt", makes the prompt; what it defines as "target", if anything, the target.
// A template sees the record's fields and nothing else: no files, no environment, no clock.
type userTemplate struct {
	prompt, target *template.Template
}

// templateFuncs are there besides text/template's own.
var templateFuncs = template.FuncMap{
	"join":  strings.Join,
	"trim":  strings.TrimSpace,
	"lower": strings.ToLower,
	"upper": strings.ToUpper,
	"inc":   func(i int) int { return i + 1 },
}

// maxTemplateBytes is the longest template.
const maxTemplateBytes = 1 << 20

func parseTemplate(name, body string) (*userTemplate, error) {
	if len(body) > maxTemplateBytes {
		return nil, problemf(ErrTemplate, "%s: %d bytes are too long for a template", name, len(body))
	}
	t, err := template.New(name).Funcs(templateFuncs).Option("missingkey=error").Parse(body)
	if err != nil {
		return nil, problemf(ErrTemplate, "%s", strings.TrimPrefix(err.Error(), "template: "))
	}
	u := &userTemplate{prompt: t.Lookup("prompt"), target: t.Lookup("target")}
	if u.prompt == nil {
		u.prompt = t
	}
	if u.prompt.Tree == nil || parse.IsEmptyTree(u.prompt.Root) {
		return nil, problemf(ErrTemplate, "%s:1: it is empty; write a body, or {{define \"prompt\"}}", name)
	}
	return u, nil
}

// execute renders prompt and target of at most limit bytes together.
func (w *Worker) execute(dst *Formatted, fields map[string]any, limit int) error {
	for i, t := range []*template.Template{w.f.template.prompt, w.f.template.target} {
		if t == nil {
			continue
		}
		w.out = boundedWriter{left: limit}
		if i == 0 {
			w.out.data = dst.Prompt
		} else {
			w.out.data = dst.Target
		}
		if err := t.Execute(&w.out, fields); err != nil {
			if errors.Is(err, ErrTooLarge) {
				return problemf(ErrTooLarge, "the template writes more than %d bytes for this record", limit)
			}
			return problemf(ErrTemplate, "%s", explain(err, fields))
		}
		limit = w.out.left
		if i == 0 {
			dst.Prompt = w.out.data
		} else {
			dst.Target, dst.HasTarget = w.out.data, true
		}
	}
	return w.validate(dst)
}

// validate mends what a template made ill-formed, by slicing within a character.
func (w *Worker) validate(dst *Formatted) error {
	for _, text := range []*[]byte{&dst.Prompt, &dst.Target} {
		if n := validPrefix(*text); n < len(*text) {
			var replaced int
			w.clean, replaced = AppendValid(w.clean[:0], *text)
			*text = append((*text)[:0], w.clean...)
			dst.Replaced += replaced
		}
	}
	return nil
}

func explain(err error, fields map[string]any) string {
	s := strings.TrimPrefix(err.Error(), "template: ")
	if strings.Contains(s, "map has no entry") {
		s += fmt.Sprintf("; the fields are %s", strings.Join(sortedKeys(fields), ", "))
	}
	return s
}

// A boundedWriter appends until its room is used up.
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

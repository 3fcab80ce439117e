package example

import (
	"text/template/parse"

	"github.com/dsload/dsload/internal/fault"
)

// maxDirectFields bounds the fields of a direct template, so that their values never exceed the bound on
// decoded fields.
const maxDirectFields = 100

// A direct is a template of text and fields alone, such as "{{.title}}: {{.text}}", in a form that needs
// no text/template. It takes records whose fields are strings; others go the general way, which has the
// same result and knows what to say about a record.
type direct struct {
	fields []string
	parts  []directPart
}

// directPart is literal text, or a field where text is nil.
type directPart struct {
	text  []byte
	field int
	again bool // an earlier part is the same field
}

// directOf returns the direct form of a parsed template, nil if there is none.
func directOf(root *parse.ListNode) *direct {
	d := &direct{}
	index := map[string]int{}
	for _, n := range root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			d.parts = append(d.parts, directPart{text: n.Text})
			continue
		case *parse.ActionNode:
			name := fieldOf(n.Pipe)
			if name == "" {
				return nil
			}
			i, known := index[name]
			if !known {
				i = len(d.fields)
				index[name], d.fields = i, append(d.fields, name)
			}
			d.parts = append(d.parts, directPart{field: i, again: known})
		default:
			return nil
		}
	}
	if len(d.fields) > maxDirectFields {
		return nil
	}
	return d
}

// fieldOf returns the field that a pipeline consists of, "" if it is anything else.
func fieldOf(p *parse.PipeNode) string {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return ""
	}
	if f, ok := p.Cmds[0].Args[0].(*parse.FieldNode); ok && len(f.Ident) == 1 {
		return f.Ident[0]
	}
	return ""
}

// directJSON renders a JSON record with a direct template. ok is false if the record must go the general
// way.
func (w *Worker) directJSON(dst *Formatted, data []byte, limit int) (ok bool, err error) {
	d := w.f.template.direct
	s := &w.scan
	w.values = append(w.values[:0], make([]foundValue, len(d.fields))...)
	s.Reset(data)
	s.unused.Begin()
	if s.Object() != nil {
		return false, nil
	}
	left := len(d.fields)
	for first := true; ; first = false {
		key, more, err := s.Member(first)
		if err != nil {
			return false, nil
		}
		if !more {
			break
		}
		i := 0
		for i < len(d.fields) && !s.IsKey(key, d.fields[i]) {
			i++
		}
		if i == len(d.fields) {
			if s.unused.skip(&s.Scanner, key) != nil {
				return false, nil
			}
			continue
		}
		v, err := s.takeValue()
		if err != nil || v.kind != '"' || w.values[i].kind != 0 {
			return false, nil
		}
		w.values[i] = v
		left--
	}
	if left > 0 || s.End() != nil {
		return false, nil
	}
	return true, w.directText(dst, data, limit)
}

// directColumns is directJSON for a row of CSV, of which the fields are decoded.
func (w *Worker) directColumns(dst *Formatted, limit int) (ok bool, err error) {
	w.values = w.values[:0]
	for _, column := range w.columns.direct {
		if column < 0 {
			return false, nil
		}
		field := w.fields.at(column)
		end := w.fields.ends[column]
		w.values = append(w.values, foundValue{kind: '"', start: end - len(field) - 1, end: end + 1})
	}
	return true, w.directText(dst, w.fields.text, limit)
}

// directDecoded is directJSON for a record that is its text.
func (w *Worker) directDecoded(dst *Formatted, data []byte, limit int) (ok bool, err error) {
	w.values = w.values[:0]
	for _, field := range w.f.template.direct.fields {
		if field != defaultTextField {
			return false, nil
		}
		w.values = append(w.values, foundValue{kind: '"', start: -1, end: len(data) + 1})
	}
	return true, w.directText(dst, data, limit)
}

// directText writes the text of a record whose values lie in data.
func (w *Worker) directText(dst *Formatted, data []byte, limit int) error {
	select {
	case <-w.done:
		return ErrStopped
	default:
	}
	out := dst.Prompt
	for i := range w.f.template.direct.parts {
		p, lone := &w.f.template.direct.parts[i], 0
		if p.text != nil {
			out = append(out, p.text...)
		} else if out, lone = w.values[p.field].appendText(out, data); !p.again {
			dst.Replaced += lone
		}
		if len(out) > limit {
			return fault.Of(ErrTooLarge, "the template writes more than %d bytes for this record", limit)
		}
	}
	dst.Prompt = out
	return nil
}

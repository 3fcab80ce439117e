package example

import (
	"errors"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/jsonscan"
)

// Only the fields of a record that a template names become values.

// decodedFields are the options of the decoder of a template's fields.
var decodedFields = values.Options{Depth: jsonscan.MaxNesting, ItemCost: 48, What: "the fields that the template uses"}

// readText gives a template a record that is text as it stands.
func (w *Worker) readText(r *rendering, data []byte) {
	build := &w.decode.Build
	start, _ := build.Mark()
	build.Member(defaultTextField, build.Text(values.View(data)))
	r.putAll(build.Dict(start))
}

// readObject gives a template the fields of a JSON object.
func (w *Worker) readObject(r *rendering, data []byte) error {
	d := &w.decode
	d.Reset(data)
	if r.whole {
		record, err := d.Dict(func([]byte) (any, error) { return d.Value() })
		if err != nil {
			return err
		}
		r.putAll(record)
		return d.End()
	}
	if err := d.Object(); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, more, err := d.Member(first)
		if err != nil {
			return err
		}
		if !more {
			return d.End()
		}
		i := 0
		for i < len(r.names) && !d.IsKey(key, r.names[i]) {
			i++
		}
		if i == len(r.names) {
			if err := w.unused.skip(&d.Scanner, key); err != nil {
				return err
			}
			continue
		}
		if err := d.Spend(values.MemberCost); err != nil {
			return err
		}
		value, err := d.Value()
		if err != nil {
			return err
		}
		r.Set(i, value)
	}
}

// readRow gives a template the columns of a row.
func (w *Worker) readRow(r *rendering, rec Record) error {
	lists := r.lists
	if b := findBuiltin(rec.Template); b != nil {
		lists = b.lists
	}
	if r.columns == nil {
		r.locate(rec.Columns)
	}
	if r.whole {
		start, _ := w.decode.Build.Mark()
		for i, name := range rec.Columns {
			value, err := w.column(name, i, lists)
			if err != nil {
				return err
			}
			w.decode.Build.Member(name, value)
		}
		r.putAll(w.decode.Build.Dict(start))
		return nil
	}
	for i, column := range r.columns {
		if column < 0 {
			continue
		}
		value, err := w.column(r.names[i], column, lists)
		if err != nil {
			return err
		}
		r.Set(i, value)
	}
	return nil
}

// locate finds the names in a header.
func (r *rendering) locate(columns []string) {
	r.columns, r.used = make([]int, len(r.names)), make([]int, len(columns))
	for i, name := range r.names {
		r.columns[i] = slices.Index(columns, name)
	}
	for i, name := range columns {
		r.used[i] = slices.Index(r.names, name)
	}
}

// column returns the value of a column: text, or a list where the format has one.
func (w *Worker) column(name string, column int, lists []string) (any, error) {
	d, field := &w.decode, w.fields.at(column)
	if err := d.Spend(values.MemberCost); err != nil {
		return nil, err
	}
	if !slices.Contains(lists, name) {
		return d.Build.Text(values.View(field)), nil
	}
	d.Reset(field)
	if d.Token() == '[' {
		list, err := d.List(func() (any, error) {
			if d.Token() != '"' {
				return nil, d.Fail(jsonscan.NoValue)
			}
			text, err := d.Text()
			return d.Build.Text(text), err
		})
		if err == nil {
			err = d.End()
		}
		if err == nil || errors.Is(err, ErrTooLarge) {
			return list, err
		}
	}
	return nil, fault.Of(ErrMalformed, "column %s: not a JSON list of strings, as recipes have; plain texts are read with "+
		"{format} csv and {template} or {text-field}", name)
}

package chat

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/jsonscan"
)

// recordOptions are those of the decoder of a record: in the order in which it is written, since a template's tojson
// writes keys in that order.
var recordOptions = values.Options{Depth: 500, ItemCost: 32, What: "its values", OwnText: true}

// decoder makes values of records, one after the other.
type decoder struct {
	values.Decoder
	tools sharedTools
}

// sharedTools are tools that record after record repeats: they are decoded once. They are never changed.
type sharedTools struct {
	raw  []byte      // the last tools' text
	list *jinja.List // nil until they are repeated
	cost int64
	lone int
}

const (
	maxSharedTools = 16 << 10 // bytes

	maxKeys = 1 << 8 // what is known of names that records make up
)

// decode decodes a whole record.
func (d *decoder) decode(data []byte) (*jinja.Dict, error) {
	d.Begin(len(data))
	d.Reset(bytes.Clone(data))
	if d.Token() == '[' {
		return nil, values.Problem(d.Fail(`no object but a list; a conversation is an object, as in {"messages": [...]}`))
	}
	record, err := d.Dict(func(name []byte) (any, error) {
		if string(name) == toolFields[0] && d.Token() == '[' {
			return d.sharedTools()
		}
		return d.Value()
	})
	if err == nil {
		err = d.End()
	}
	if err == nil {
		err = d.unwrap(record)
	}
	return record, values.Problem(err)
}

// sharedTools decodes the list of a record's tools.
func (d *decoder) sharedTools() (any, error) {
	t, rest, start := &d.tools, d.Rest(), d.Offset()
	if len(t.raw) == 0 || !bytes.HasPrefix(rest, t.raw) {
		list, err := d.Value()
		if n := d.Offset() - start; err == nil && n <= maxSharedTools {
			*t = sharedTools{raw: bytes.Clone(rest[:n])}
		}
		return list, err
	}
	if t.list == nil {
		inner := values.Decoder{Options: d.Options, Left: d.Left}
		inner.Reset(t.raw)
		list, err := inner.Value()
		if err != nil {
			return nil, err
		}
		t.list, t.cost, t.lone = list.(*jinja.List), d.Left-inner.Left, inner.Lone
	}
	d.Lone += t.lone
	d.Advance(len(t.raw))
	return t.list, d.Spend(int(t.cost))
}

// parse decodes JSON in a string of the last record.
func (d *decoder) parse(s string) (any, error) {
	err := d.Spend(len(s))
	if err != nil {
		return nil, err
	}
	d.ResetString(s)
	kind := "value"
	if d.Token() == '[' {
		kind = "list"
	}
	v, err := d.Value()
	if err == nil && d.End() != nil {
		err = d.Fail(jsonscan.Cause("something after the " + kind))
	}
	return v, orOfPython(s, values.Problem(err))
}

// orOfPython returns the error about a string that is not JSON, or what it is if Python wrote it.
func orOfPython(s string, err error) error {
	if err != nil && !errors.Is(err, ErrTooLarge) && writtenByPython(s) {
		return errPython
	}
	return err
}

var errPython = errors.New("it is what Python's str() writes; write it with json.dumps")

// writtenByPython reports whether a string is an object, or a list of some, as Python prints it.
func writtenByPython(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, "[ "), "{'") }

// decodeRow makes a record of a row of CSV of size bytes: its fields are strings, and an empty one
// has no value.
func (d *decoder) decodeRow(columns []string, at func(column int) []byte, size int) (*jinja.Dict, error) {
	d.Begin(size)
	record, err := &jinja.Dict{}, d.Spend(values.ObjectCost+size) // the row's fields, decoded, lie beside the record
	for i := 0; i < len(columns) && err == nil; i++ {
		var value any
		cost := values.MemberCost
		if field := at(i); len(field) > 0 {
			value, cost = string(field), cost+values.StringCost+len(field)
		}
		record.Set(columns[i], value)
		err = d.Spend(cost)
	}
	if err == nil {
		err = d.unwrap(record)
	}
	return record, err
}

// wrappedFields are those that may hold JSON in a string.
var wrappedFields = slices.Concat(listFields, toolFields)

// maybeWrapped are those, and after them the fields that hold a text or a list of messages.
var maybeWrapped = func() []string {
	fields := append(slices.Clone(wrappedFields), "chosen", preferredField)
	for _, p := range pairFields {
		for _, field := range []string{p.question, p.answer} {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	return fields
}()

// listStart is how a list of messages begins that a program wrote as JSON, or Python as its own.
var listStart = regexp.MustCompile(`^\[\s*\{\s*["'](role|from|content|value)["']\s*:`)

// beginsMessages reports whether a string may be a list of messages.
func beginsMessages(s string) bool { return strings.HasSuffix(s, "]") && listStart.MatchString(s) }

// unwrap decodes the lists of messages and of tools that a record holds as JSON in a string, as
// formats without lists do.
func (d *decoder) unwrap(record *jinja.Dict) error {
	for i, field := range maybeWrapped {
		s, _ := peek(record, field).(string)
		if s = strings.TrimSpace(s); !strings.HasPrefix(s, "[") {
			continue
		}
		isText := i >= len(wrappedFields)
		if isText && !beginsMessages(s) {
			continue
		}
		list, err := d.parse(s)
		switch {
		case errors.Is(err, ErrTooLarge):
			return err
		case isText && (err != nil || !areMessages(list)):
			continue // it only begins like one
		case err != nil:
			return fault.Of(ErrShape, "%q is a string but not a JSON list: %v", field, err)
		}
		record.Set(field, list)
	}
	return nil
}

// areMessages reports whether a value is a list of objects that have a role.
func areMessages(v any) bool {
	list, ok := v.(*jinja.List)
	return ok && areObjects(list) && !slices.ContainsFunc(list.Items, func(item any) bool {
		return !has(item.(*jinja.Dict), "role") && !has(item.(*jinja.Dict), "from")
	})
}

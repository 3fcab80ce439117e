package shape

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/loader/build/example"
)

// A condition holds if a field's value equals one of its values.
type condition struct {
	path   example.FieldPath
	values []wanted
}

// maxConditions bounds the fields of Where: each has a bit in a set of present fields.
const maxConditions = 64

// parseWhere collects the values of each field.
func parseWhere(list []string) (out []condition, err error) {
	for _, text := range list {
		bad := func(format string, args ...any) ([]condition, error) {
			return nil, fault.BadOption("where", strconv.Quote(text), format, args...)
		}
		field, value, found := strings.Cut(text, "=")
		switch {
		case !found || field == "":
			return bad("write FIELD=VALUE, as in lang=en")
		case strings.ContainsAny(field[len(field)-1:], "!<>~"):
			return bad("a value is compared by = alone: write FIELD=VALUE, or filter before the build")
		}
		value = strings.TrimPrefix(value, "=") // accept == as in programming languages
		i := slices.IndexFunc(out, func(c condition) bool { return c.path.String() == field })
		if i < 0 {
			path, err := example.ParseFieldPath(field)
			if err != nil {
				return bad("%v", err)
			}
			i, out = len(out), append(out, condition{path: path})
		}
		out[i].values = append(out[i].values, parseWanted(value))
	}
	if len(out) > maxConditions {
		return nil, fault.BadOption("where", nil, "%d fields are more than %d", len(out), maxConditions)
	}
	return out, nil
}

// Fields returns the fields of the conditions, in the order of Options.Where. The caller must not
// change the slice.
func (f *Filter) Fields() []example.FieldPath { return f.fields }

// JSON judges a record that is a JSON object. has has a bit for each field of the conditions that
// the record has. It returns an error for a malformed record.
func (f *Filter) JSON(record []byte) (holds bool, has uint64, err error) {
	holds = true
	for i := range f.where {
		c := &f.where[i]
		value, err := c.path.Find(record)
		if err != nil {
			return false, has, err
		}
		if value == nil {
			holds = false
			continue
		}
		has |= 1 << i
		holds = holds && slices.ContainsFunc(c.values, func(w wanted) bool { return w.equalsJSON(value) })
	}
	return holds, has, nil
}

// Row judges a record of untyped columns; value returns the field of a column.
func (f *Filter) Row(columns []string, value func(i int) []byte) (holds bool, has uint64) {
	holds = true
	for i := range f.where {
		c := &f.where[i]
		at := slices.Index(columns, c.path.String())
		if at < 0 {
			holds = false
			continue
		}
		has |= 1 << i
		text := value(at)
		holds = holds && slices.ContainsFunc(c.values, func(w wanted) bool { return w.equalsText(text) })
	}
	return holds, has
}

// wanted is a VALUE with its meanings besides its text.
type wanted struct {
	text   string
	number string // canonical, "" for none
	word   string // "true", "false" or "null", "" for none
}

func parseWanted(text string) wanted {
	w := wanted{text: text}
	if n, ok := canonicalNumber([]byte(text)); ok {
		w.number = n
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.EqualFold(text, word) {
			w.word = word
		}
	}
	return w
}

// equalsJSON compares with a JSON value: strings by text, numbers by value, true, false and null by
// name. A list is equal if one of its elements is. An object is never equal.
func (w wanted) equalsJSON(value []byte) bool {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return false
	}
	switch value[0] {
	case '"':
		if !bytes.ContainsRune(value, '\\') {
			return string(value[1:len(value)-1]) == w.text
		}
		var text string
		return json.Unmarshal(value, &text) == nil && text == w.text
	case '[':
		var list []json.RawMessage
		return json.Unmarshal(value, &list) == nil && slices.ContainsFunc(list, func(v json.RawMessage) bool {
			return len(v) > 0 && v[0] != '[' && w.equalsJSON(v)
		})
	case '{':
		return false
	case 't', 'f', 'n':
		return string(value) == w.word
	}
	if w.number == "" {
		return string(value) == w.text // Python's NaN and infinities
	}
	n, ok := canonicalNumber(value)
	return ok && n == w.number
}

// equalsText compares with a text that may stand for a number or a boolean.
func (w wanted) equalsText(text []byte) bool {
	if string(text) == w.text {
		return true
	}
	if w.number != "" {
		n, ok := canonicalNumber(text)
		return ok && n == w.number
	}
	return (w.word == "true" || w.word == "false") && strings.EqualFold(string(text), w.word)
}

package hf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// maxNodes bounds the number of JSON values in a component.
const maxNodes = 20000

// maxComponent bounds the bytes of a component in its file, and maxText those of each of its
// strings except a precompiled character map: a normalizer writes its content for every match, so a
// long one would multiply text.
const (
	maxComponent = 16 << 20
	maxText      = 64 << 10
)

// reading is the state shared by reads of several components.
type reading struct {
	err     error    // the first
	ignored []string // members without effect
	mem     *spec.Meter
}

// readComponent reads a component as a tree.
func readComponent(s *jsonx.Scanner, mem *spec.Meter, what string) (jsonx.Value, error) {
	s.Peek()
	from := s.Offset()
	if err := s.Skip(); err != nil {
		return jsonx.Value{}, err
	}
	size := s.Offset() - from
	if size > maxComponent {
		return jsonx.Value{}, spec.TooLargef("the %s has %d bytes; the limit is %d", what, size, maxComponent)
	}
	if err := mem.Take(4*int64(size), "the "+what); err != nil {
		return jsonx.Value{}, err
	}
	s.Seek(from)
	return s.Value(maxNodes)
}

// component is a component of a tokenizer.json, such as a normalizer, with its type. Errors name
// its byte offset and type.
type component struct {
	jsonx.Value
	kind string
	r    *reading
}

// open reads a component's type.
func open(v jsonx.Value, what string, r *reading) component {
	c := component{Value: v, r: r}
	if v.Kind != '{' {
		c.fail("%s is not an object", what)
		return c
	}
	t := v.Get("type")
	if t.Kind != '"' {
		c.fail("%s without a type", what)
		return c
	}
	c.kind = t.Text
	return c
}

func (c component) refuse(err error) { c.r.err = cmp.Or(c.r.err, err) }

func (c component) fail(format string, args ...any) { c.refuse(c.Errorf(format, args...)) }

func (c component) unsupported(what string) {
	c.refuse(spec.Unsupportedf("%s %q at byte %d", what, c.kind, c.Offset))
}

// fields records members other than these and "type": they have no effect, as in Hugging Face's
// library. It ignores null and false.
func (c component) fields(names ...string) {
	for _, m := range c.Members {
		if m.Key != "type" && m.Value.Kind != 'n' && m.Value.Kind != 'f' && !slices.Contains(names, m.Key) {
			c.r.ignored = append(c.r.ignored, fmt.Sprintf("field %.80q of %s ignored, as Hugging Face's library does",
				m.Key, c.kind))
		}
	}
}

func (c component) get(name string, kind byte, what string) jsonx.Value {
	v := c.Get(name)
	if v.Kind != kind {
		c.fail("%s: field %q must be %s", c.kind, name, what)
	}
	return v
}

// str reads a string of at most maxText bytes.
func (c component) str(name string) string {
	text := c.get(name, '"', "a string").Text
	if len(text) > maxText {
		c.refuse(spec.TooLargef("%s: field %q has %d bytes; the limit is %d", c.kind, name, len(text), maxText))
		return ""
	}
	return text
}

func (c component) char(name string) rune {
	s := c.str(name)
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || n != len(s) {
		c.fail("%s: field %q must be one character", c.kind, name)
	}
	return r
}

func (c component) boolean(name string) bool {
	v := c.Get(name)
	if v.Kind != 't' && v.Kind != 'f' {
		c.fail("%s: field %q must be true or false", c.kind, name)
	}
	return v.Kind == 't'
}

// optional reads a boolean that may be absent.
func (c component) optional(name string, absent bool) bool {
	if v := c.Get(name); v.IsNull() {
		return absent
	}
	return c.boolean(name)
}

func (c component) integer(name string) int {
	v := c.get(name, '0', "an integer")
	n, err := strconv.ParseUint(v.Text, 10, 31)
	if err != nil {
		c.fail("%s: field %q must be an integer", c.kind, name)
	}
	return int(n)
}

func (c component) list(name string) []jsonx.Value { return c.get(name, '[', "a list").Elems }

// pattern reads {"String": …} or {"Regex": …}.
func (c component) pattern() normalize.Pattern {
	v := c.get("pattern", '{', "an object")
	if len(v.Members) == 1 && v.Members[0].Value.Kind == '"' {
		text := v.Members[0].Value.Text
		switch v.Members[0].Key {
		case "String":
			if len(text) > maxText {
				c.refuse(spec.TooLargef("%s: a pattern of %d bytes; the limit is %d", c.kind, len(text), maxText))
			}
			return normalize.String(text)
		case "Regex":
			return c.expression(text)
		}
	}
	c.fail("%s: field \"pattern\" must hold a String or a Regex", c.kind)
	return normalize.Pattern{}
}

// expression compiles a regular expression.
func (c component) expression(text string) normalize.Pattern {
	p, err := spec.Compile(text)
	if err == nil {
		err = c.r.mem.Take(p.Expression.Bytes(), "the pattern of "+c.kind)
	}
	if err != nil {
		c.refuse(fmt.Errorf("%s at byte %d: %w", c.kind, c.Offset, err))
	}
	return p
}

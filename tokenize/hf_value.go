package tokenize

import (
	"strconv"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
)

// maxNodes bounds how many JSON values a component may consist of.
const maxNodes = 20000

// component is a component of a tokenizer.json, such as a normalizer, with its type. Errors name its place and type. The first
// error of a series of reads is kept in *err.
type component struct {
	jsonx.Value
	kind string
	err  *error
}

// open reads a component's type.
func open(v jsonx.Value, what string, err *error) component {
	c := component{Value: v, err: err}
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

func (c component) fail(format string, args ...any) {
	if *c.err == nil {
		*c.err = c.Errorf(format, args...)
	}
}

func (c component) unsupported(what string) {
	if *c.err == nil {
		*c.err = unsupportedf("%s %q at byte %d", what, c.kind, c.Offset)
	}
}

// fields checks that there are no members but these (and "type"). A member that says nothing (null, false) may stay.
func (c component) fields(names ...string) {
next:
	for _, m := range c.Members {
		if m.Key == "type" || m.Value.Kind == 'n' || m.Value.Kind == 'f' {
			continue
		}
		for _, n := range names {
			if m.Key == n {
				continue next
			}
		}
		if *c.err == nil {
			*c.err = unsupportedf("field %q of %s at byte %d", m.Key, c.kind, m.Value.Offset)
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

func (c component) str(name string) string { return c.get(name, '"', "a string").Text }

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
func (c component) pattern() (text string, regex bool) {
	v := c.get("pattern", '{', "an object")
	if len(v.Members) == 1 && v.Members[0].Value.Kind == '"' {
		switch m := v.Members[0]; m.Key {
		case "String":
			return m.Value.Text, false
		case "Regex":
			return m.Value.Text, true
		}
	}
	c.fail("%s: field \"pattern\" must hold a String or a Regex", c.kind)
	return "", false
}

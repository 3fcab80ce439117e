package filter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/lazy"
)

// A condition is all that Where asks of a field. It holds if the field equals one of values, where
// there are any, and none of others, and meets all bounds.
type condition struct {
	path           example.FieldPath
	values, others []wanted
	bounds         []bound
}

// compares reports whether anything but equality is asked. A field without a value never meets that.
func (c *condition) compares() bool { return len(c.others)+len(c.bounds) > 0 }

// maxConditions bounds the fields of Where: each has a bit in a set of fields.
const maxConditions = 64

// operators are those of Where, none after one that begins it. "!=" is found by its second character.
var operators = []string{">=", "<=", ">", "<", "="}

// parseWhere collects what is asked of each field.
func parseWhere(list []string) (out []condition, err error) {
	for _, text := range list {
		field, operator, value, err := splitCondition(text)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(c condition) bool { return c.path.String() == field })
		if i < 0 {
			path, err := example.ParseFieldPath(field)
			if err != nil {
				return nil, badWhere(text, "%v", err)
			}
			i, out = len(out), append(out, condition{path: path})
		}
		switch c := &out[i]; operator {
		case "=":
			c.values = append(c.values, parseWanted(value))
		case "!=":
			c.others = append(c.others, parseWanted(value))
		default:
			c.bounds = append(c.bounds, bound{operator, newOperand([]byte(value))})
		}
	}
	if len(out) > maxConditions {
		return nil, fault.BadOption("where", nil, "%d fields are more than %d", len(out), maxConditions)
	}
	return out, nil
}

func badWhere(text, format string, args ...any) error {
	return fault.BadOption("where", strconv.Quote(text), format, args...)
}

// splitCondition parses FIELD, an operator and VALUE. White space around the operator does not count, nor do
// quotes around the value, as other languages want them.
func splitCondition(text string) (field, operator, value string, err error) {
	bad := func(format string, args ...any) (string, string, string, error) {
		return "", "", "", badWhere(text, format, args...)
	}
	const usage = "write FIELD=VALUE, as in lang=en, or compare by !=, >=, <=, > or <"
	at := strings.IndexAny(text, "=<>")
	if at < 0 {
		return bad("%s; quote such a condition, since a shell takes > and < for itself: {where} 'score>=3'; "+
			"for one of several values write {where} lang=en {where} lang=de, and for none FIELD=null", usage)
	}
	field = text[:at]
	for _, operator = range operators {
		if rest, found := strings.CutPrefix(text[at:], operator); found {
			value = rest
			break
		}
	}
	if name, not := strings.CutSuffix(field, "!"); not && operator == "=" {
		field, operator = name, "!="
	}
	if operator == "=" {
		value = strings.TrimPrefix(value, "=") // accept == as in programming languages
	}
	given := strings.TrimSpace(value)
	field, value = strings.TrimSpace(field), unquoted(given)
	quoted := value != given && !strings.Contains(value, given[:1])
	if more := several().FindStringSubmatch(given); more != nil && !quoted {
		return bad("it seems to be two conditions, with %s between them; give each a {where} of its own, or put VALUE in "+
			"quotes if that is a part of it", strings.TrimSpace(more[1]))
	}
	switch {
	case field == "":
		return bad("the name of the field is missing; %s", usage)
	case strings.HasSuffix(field, "~"):
		return bad("a value is not compared with an expression; choose by the text with {match}")
	case strings.HasSuffix(field, "!"):
		return bad("! stands before = alone; %s", usage)
	case operator == "=" && value != "" && value == given && strings.Contains("=~", value[:1]):
		return bad("VALUE would begin with %s; %s, choose by an expression with {match}, and put a VALUE that begins so "+
			"in quotes", value[:1], usage)
	case operator == "=" && value != "" && value == given && strings.Contains("<>", value[:1]) && isNumber(value[1:]):
		return bad("it has a sign too many, or in the wrong order: write %s%s=%s, and put a VALUE that begins so in quotes",
			field, value[:1], value[1:])
	case operator == "=":
	case value == "":
		return bad("the value is missing: write one after %s, as in score%s3", operator, operator)
	case value != given: // in quotes any sign is a part of it
	case operator == "<" && value[0] == '>':
		return bad("write != for unequal, as in %s!=%s", field, value[1:])
	case strings.Contains("=<>!", value[:1]):
		return bad("it has a sign too many; %s", usage)
	}
	return field, operator, value, nil
}

// several matches what joins two conditions in other languages, and the sign of the second one.
var several = lazy.Regexp(`(?i)(\s(and|or)\s|&&|\|\||[,;])\s*[\w.\[\]]*\s*([!=<>]=|[=<>]|\s(in|like|is|between)\s)`)

// unquoted returns the value between two quotes.
func unquoted(value string) string {
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}

// Fields returns the fields of the conditions, in the order of Options.Where. The caller must not
// change the slice.
func (f *Filter) Fields() []example.FieldPath { return f.fields }

// FieldNames returns the names of the fields of the conditions, and of the fields in which they lie.
func (f *Filter) FieldNames() (names []string) {
	if f == nil {
		return nil
	}
	for _, field := range f.fields {
		names = append(names, field.String(), field.Root())
	}
	return names
}

// Compares reports whether Where has anything but equality.
func (f *Filter) Compares() bool {
	return slices.ContainsFunc(f.where, func(c condition) bool { return c.compares() })
}

// A Verdict is what Where makes of a record.
type Verdict struct {
	Holds  bool
	Has    uint64 // a bit for each field that the record has or that is decided
	AsText bool   // a number was compared by order with what is none, as a text
}

// JSON judges a record that is a JSON object. decided has a bit for each field whose conditions are
// known to hold. It returns an error for a malformed record.
func (f *Filter) JSON(record []byte, decided uint64) (v Verdict, err error) {
	v = Verdict{Holds: true, Has: decided}
	for i := range f.where {
		if decided&(1<<i) != 0 {
			continue
		}
		c := &f.where[i]
		value, err := c.path.Find(record)
		if err != nil {
			v.Holds = false
			return v, err
		}
		if value == nil {
			v.Holds = false
			continue
		}
		v.Has |= 1 << i
		v.Holds = v.Holds && c.holdsJSON(value)
		v.AsText = v.AsText || len(c.bounds) > 0 && c.asText(value)
	}
	return v, nil
}

// asText reports whether a bound is a number and the JSON value, or an element of it, a text, or the other way
// round.
func (c *condition) asText(value []byte) bool {
	switch b := value[0]; {
	case b == '"':
		return c.wants(true)
	case b == '-', b >= '0' && b <= '9':
		return c.wants(false)
	case b == '[':
		return anyElement(value, c.asText)
	}
	return false
}

// wants reports whether a bound is a number, or whether one is none.
func (c *condition) wants(number bool) bool {
	return slices.ContainsFunc(c.bounds, func(b bound) bool { return b.isNumber == number })
}

// Row judges a record of untyped columns; value returns the field of a column. decided is that of JSON.
func (f *Filter) Row(columns []string, value func(i int) []byte, decided uint64) Verdict {
	v := Verdict{Holds: true, Has: decided}
	for i := range f.where {
		if decided&(1<<i) != 0 {
			continue
		}
		c := &f.where[i]
		at := slices.Index(columns, c.path.String())
		if at < 0 {
			v.Holds = false
			continue
		}
		v.Has |= 1 << i
		text := value(at)
		v.Holds = v.Holds && c.holdsText(text, wanted.equalsText)
		v.AsText = v.AsText || len(text) > 0 && len(c.bounds) > 0 && !isNaN(text) && c.wants(!isNumber(string(text)))
	}
	return v
}

// Folder judges the i-th field by the name of a folder, KEY=VALUE. null reports that it stands for no
// value.
func (f *Filter) Folder(i int, value string, null bool) bool {
	c := &f.where[i]
	if null {
		return c.holdsJSON([]byte("null"))
	}
	return c.holdsText([]byte(value), wanted.equalsFolder)
}

// holdsJSON judges a JSON value. null is not a value: it equals the word, and meets no comparison.
func (c *condition) holdsJSON(value []byte) bool {
	return c.holds(func(w wanted) bool { return w.equalsJSON(value) }, value[0] != 'n' && value[0] != '{',
		func(b bound) bool { return !b.holdsJSON(value) })
}

// holdsText judges an untyped text, which may stand for a number or a boolean. An empty one is not a value.
func (c *condition) holdsText(text []byte, equals func(w wanted, text []byte) bool) bool {
	return c.holds(func(w wanted) bool { return equals(w, text) }, len(text) > 0,
		func(b bound) bool { return !b.holdsText(text) })
}

// holds judges what equals some values, is comparable or not, and breaks some bounds.
func (c *condition) holds(equals func(wanted) bool, comparable bool, breaks func(bound) bool) bool {
	if len(c.values) > 0 && !slices.ContainsFunc(c.values, equals) {
		return false
	}
	return !c.compares() || comparable && !slices.ContainsFunc(c.others, equals) && !slices.ContainsFunc(c.bounds, breaks)
}

package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Option is the name of an option in a dataset's settings, such as "max-length".
type Option string

// String returns the name in backquotes.
func (o Option) String() string { return Names(nil).write(o, nil) }

// Names writes an option, and its value if it is not nil. Names nil writes `max-length` 512.
type Names func(option Option, value any) string

func (n Names) write(option Option, value any) string {
	switch {
	case n != nil && value == "":
		return n(option, nil)
	case n != nil:
		return n(option, value)
	case value == nil, value == "":
		return "`" + string(option) + "`"
	}
	return fmt.Sprintf("`%s` %v", string(option), value)
}

// given is an option with its value.
type given struct {
	option Option
	value  any
}

// Given returns an option with the value that it was given, to name both in a Text.
func Given(option Option, value any) any { return given{option, value} }

// A Text is a sentence in which options are values until it is read.
type Text struct {
	format string // a format of fmt, in which {max-length} stands for the option of this name
	args   []any
}

var placeholder = regexp.MustCompile(`\{+[a-z]+(-[a-z]+)*\}`)

// Textf returns a text. Its format is that of fmt, in which {max-length} stands for the option of this
// name. Arguments may be Options, Texts and errors, whose options are values too.
func Textf(format string, args ...any) Text {
	if text := deferred(format, args); text.format != "" {
		return text
	}
	return Plain(fmt.Sprintf(format, args...))
}

// deferred returns the text if it may have options, else a zero one. It copies what the caller may change.
func deferred(format string, args []any) Text {
	has := strings.Contains(format, "{")
	args = slices.Clone(args)
	for i, arg := range args {
		switch a := arg.(type) {
		case Option, given, Text, error:
			has = true
		case []byte:
			args[i] = string(a)
		}
	}
	if !has {
		return Text{}
	}
	return Text{format, args}
}

// Plain returns a text without options.
func Plain(text string) Text { return Text{"%s", []any{text}} }

// Join returns the texts in a row, with a separator without placeholders.
func Join(texts []Text, separator string) Text {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = t
	}
	return Text{strings.TrimSuffix(strings.Repeat("%v"+separator, len(texts)), separator), args}
}

// String returns the text with options in backquotes.
func (t Text) String() string { return t.In(nil) }

// IsZero reports whether the text is empty.
func (t Text) IsZero() bool { return t.format == "" }

// In returns the text, with options written by names.
func (t Text) In(names Names) string {
	args := make([]any, len(t.args))
	for i, arg := range t.args {
		switch a := arg.(type) {
		case Option:
			args[i] = names.write(a, nil)
		case given:
			args[i] = names.write(a.option, a.value)
		case Text:
			args[i] = a.In(names)
		case error:
			args[i] = errors.New(Show(a, names)) // an error again, as %w demands
		default:
			args[i] = arg
		}
	}
	format := placeholder.ReplaceAllStringFunc(t.format, func(option string) string {
		if option[1] == '{' {
			return option // {{end}} of a template
		}
		return strings.ReplaceAll(names.write(Option(option[1:len(option)-1]), nil), "%", "%%")
	})
	return fmt.Errorf(format, args...).Error()
}

// All returns texts with options written by names.
func All(texts []Text, names Names) []string {
	var out []string
	for _, t := range texts {
		out = append(out, t.In(names))
	}
	return out
}

// In JSON a text with options is a list: text, the name of an option, text, and so on. One without is a string.

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	const mark = "\x00"
	parts := strings.Split(t.In(func(o Option, _ any) string { return mark + string(o) + mark }), mark)
	if len(parts) == 1 {
		return json.Marshal(parts[0])
	}
	return json.Marshal(parts)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*t = Plain(text)
		return nil
	}
	var parts []string
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var list []Text
	for i, part := range parts {
		if i%2 == 0 {
			list = append(list, Plain(part))
		} else {
			list = append(list, Textf("%v", Option(part)))
		}
	}
	*t = Join(list, "")
	return nil
}

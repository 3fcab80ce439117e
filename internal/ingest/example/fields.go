package example

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/jsonscan"
)

// maxFieldsTold is the maximum number of fields that an error names.
const maxFieldsTold = 20

// FieldError means that a record lacks a wanted field. It names the fields that may be meant, and
// matches ErrUnknownField.
type FieldError struct {
	Field  string
	Column bool     // a column of a CSV record
	Has    []string // the record's first fields
	Likely string   // the field that most likely holds the text, "" if none does
	Usual  bool     // it has a usual name
	Chat   string   // a field of messages, or ""
	Lists  []string // fields that hold lists of objects, none of which is a chat
	Keyed  bool     // several fields hold objects with a text, which may be the records
	// Inside has, for each field of a JSON record that is no string, how a template reaches a text in it, "" where there
	// is none.
	Inside map[string]string
	// Names are names for the columns of a CSV file whose first line looks like a record, with Field
	// for the text; nil for other files.
	Names []string
	// Separator is the character that may separate the fields of a CSV file of one column, or "".
	Separator string
}

func (e *FieldError) Error() string {
	has := strings.Join(e.Has, ", ")
	if has == "" {
		has = "none"
	}
	s := fmt.Sprintf("no %s; the record has %s", e.Wanted(), has)
	if e.Column {
		s = fmt.Sprintf("no column %s; the columns are %s", oneOf(e.Field), has)
	}
	switch {
	case e.Chat != "":
		s += fmt.Sprintf("; %q looks like the messages of a chat", e.Chat)
	case e.Likely != "":
		s += fmt.Sprintf("; %q looks like the text", e.Likely)
	}
	return s
}

// Wanted names the field that the record lacks.
func (e *FieldError) Wanted() string { return "field " + oneOf(e.Field) }

// Is implements errors.Is for ErrUnknownField.
func (e *FieldError) Is(target error) bool { return target == ErrUnknownField }

// missingPart removes from the error for one of several joined fields the advice to use another
// field instead.
func missingPart(err error) error {
	var field *FieldError
	if errors.As(err, &field) {
		field.Likely = ""
	}
	return err
}

// usualFields lists the fields that hold the text in many datasets, the likeliest first.
var usualFields = []string{"text", "content", "body", "article", "document", "passage", "story", "completion",
	"output", "response", "answer", "code",
	"sentence", "paragraph", "message", "review", "comment", "abstract", "description", "prompt", "question",
	"instruction", "input", "summary", "title"}

// Usual returns those of some names that usually are that of the text, the likeliest first.
func Usual(names []string) []string {
	return slices.DeleteFunc(slices.Clone(usualFields), func(name string) bool { return !slices.Contains(names, name) })
}

// chatFields lists the fields that usually hold a chat.
var chatFields = []string{"messages", "conversations", "conversation", "chat", "dialogue", "dialog"}

// judgedBytes is how much of a string is looked at to see whether it is a text.
const judgedBytes = 4 << 10

// add adds a field of the record to the error. text is nil for a field that is not a string.
func (e *FieldError) add(name string, text []byte, list bool, longest *int) {
	if len(e.Has) < maxFieldsTold {
		e.Has = append(e.Has, values.Shorten(name))
	} else if len(e.Has) == maxFieldsTold {
		e.Has = append(e.Has, "…")
	}
	if list && e.Chat == "" && slices.Contains(chatFields, strings.ToLower(name)) {
		e.Chat = values.Shorten(name)
	}
	// A usual name counts more than length, unless the other text is much longer.
	old, is, textBytes := usualRank(e.Likely), usualRank(name), len(text)
	usual, head := is < len(usualFields), text[:min(len(text), judgedBytes)]
	if text == nil || usual && isCode(head) || !usual && (IsQuiet(name) || !readsAsText(head)) {
		return
	}
	better := *longest < 0 || is < old && 8*textBytes >= *longest || is == old && textBytes > *longest ||
		is > old && textBytes > 8**longest
	if better {
		e.Likely, e.Usual, *longest = values.Shorten(name), usual, textBytes
	}
}

// missingField returns the error for a field that a well-formed JSON record lacks.
func missingField(name string, data []byte) error {
	e := &FieldError{Field: name}
	longest, object, keyed := -1, "", 0
	var s jsonscan.Scanner
	s.Reset(data)
	err := s.Members(func(key []byte) error {
		name, kind, start := string(key), s.Token(), s.Offset()
		if kind == '[' && holdsObjects(s.Rest()) && !slices.Contains(chatFields, strings.ToLower(name)) &&
			len(e.Lists) < maxFieldsTold && values.Shorten(name) == name {
			e.Lists = append(e.Lists, name)
		}
		if err := s.Skip(); err != nil {
			return err
		}
		if kind != '"' && kind != 'n' && len(e.Inside) < maxFieldsTold {
			if e.Inside == nil {
				e.Inside = map[string]string{}
			}
			e.Inside[name] = inside(data[start:s.Offset()], 0)
		}
		if kind == '{' && keyed < 2 {
			if path := textInside(name, data[start:s.Offset()]); path != "" {
				keyed++
				object = cmp.Or(object, path)
			}
		}
		e.add(name, stringIn(data[start:s.Offset()]), kind == '[', &longest)
		return nil
	})
	if err != nil {
		return values.Problem(err)
	}
	if object != "" && !e.Usual {
		e.Likely, e.Usual, e.Keyed = object, true, keyed > 1
	}
	return e
}

// deepestInside bounds how deep a text is looked for.
const deepestInside = 4

// inside returns what reaches a string in a list or an object, as in [0].text, "" if there is none. Of several strings
// it is one with a usual name of the text, or the first.
func inside(value []byte, depth int) (path string) {
	var s jsonscan.Scanner
	s.Reset(value)
	if kind := s.Token(); depth == deepestInside || kind != '[' && kind != '{' {
		return ""
	} else if kind == '[' {
		first := bytes.TrimLeft(value[1:], " \t\r\n")
		if path = inside(first, depth+1); path != "" || first[0] == '"' {
			return "[0]" + path
		}
		return ""
	}
	best := len(usualFields) + 1
	err := s.Members(func(key []byte) error {
		name, isText, start := string(key), s.Token() == '"', s.Offset()
		if err := s.Skip(); err != nil {
			return err
		}
		within, rank := inside(value[start:s.Offset()], depth+1), usualRank(name)
		if rank < best && identifierLike(name) && !strings.Contains(name, " ") && !IsQuiet(name) && (isText || within != "") {
			path, best = "."+name+within, rank
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return path
}

// usualRank returns the place of a name among usualFields, their number for others.
func usualRank(name string) int {
	if i := slices.Index(usualFields, strings.ToLower(name)); i >= 0 {
		return i
	}
	return len(usualFields)
}

// stringIn returns the text of a JSON value that is a string, nil for others.
func stringIn(value []byte) []byte {
	if value[0] != '"' {
		return nil
	}
	text, _ := jsonscan.Unescape([]byte{}, value[1:len(value)-1])
	return text
}

// textInside returns the path of the string in an object that has a usual name of the text, "" if none has.
func textInside(name string, object []byte) string {
	e, longest := FieldError{}, -1
	var s jsonscan.Scanner
	s.Reset(object)
	err := s.Members(func(key []byte) error {
		field, _, start := string(key), s.Token(), s.Offset()
		err := s.Skip()
		if err == nil {
			e.add(field, stringIn(object[start:s.Offset()]), false, &longest)
		}
		return err
	})
	if path := name + "." + e.Likely; err == nil && e.Usual && identifierLike(name) && values.Shorten(path) == path {
		return path
	}
	return ""
}

// Null is the kind of a field without a value, in a NotTextError.
const Null = "null"

// A NotTextError means that the field of the text holds something else. It matches ErrUnknownField.
type NotTextError struct {
	Field, Kind string
	Inside      string // the path of a string in it that looks like the text, or ""
	ByRow       bool   // it is an object whose first key is 0, as in a table that pandas wrote by columns
}

func (e *NotTextError) Error() string {
	return fmt.Sprintf("field %q is %s, not a string", e.Field, e.Kind)
}

// Is implements errors.Is for ErrUnknownField.
func (e *NotTextError) Is(target error) bool { return target == ErrUnknownField }

// holdsObjects reports whether the first element of a list is an object.
func holdsObjects(list []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(list[1:], " \t\r\n"), []byte("{"))
}

// missingColumn returns the error for a column that a CSV record lacks.
func missingColumn(name string, columns []string, fields *csvFields) error {
	e := &FieldError{Field: name, Column: true}
	longest, text, textBytes := -1, 0, -1
	for i, column := range columns {
		e.add(column, append([]byte{}, fields.at(i)...), false, &longest)
		n := len(column) + len(fields.at(i))
		if readsAsText(fields.at(i)) {
			n += 1 << 30 // before what is no text
		}
		if n > textBytes {
			text, textBytes = i, n
		}
	}
	if len(columns) == 1 && columns[0] != "" {
		e.Separator = separatorOf(columns[0], string(fields.at(0)))
	}
	if e.Separator != "" {
		e.Likely = ""
	}
	if e.Separator != "" || !areValues(columns) || len(columns) > maxFieldsTold {
		return e
	}
	e.Likely = ""
	for i := range columns {
		e.Names = append(e.Names, fmt.Sprintf("column%d", i+1))
	}
	if identifierLike(name) {
		e.Names[text] = name
	} else {
		e.Names[text] = "text"
	}
	return e
}

// identifierLike reports whether a name can be in a list of names as it is.
func identifierLike(name string) bool { return name != "" && !strings.ContainsAny(name, ",.[]\"\n") }

// areValues reports whether the names of columns look like the values of a record: sentences, or numbers
// next to words. Columns that are all numbered are those of a table without names.
func areValues(columns []string) bool {
	numbers, sentences, named := 0, 0, 0
	for _, name := range columns {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		named++
		words := len(strings.Fields(name))
		if _, err := strconv.ParseFloat(name, 64); err == nil {
			numbers++
		} else if len(name) > 60 || words > 4 || words > 1 && strings.ContainsAny(name[len(name)-1:], ".!?") {
			sentences++
		}
	}
	return sentences > 0 || numbers > 0 && numbers < named
}

// separatorOf returns the character that divides the header of one column and its first record into as
// many fields, "" if there is none.
func separatorOf(header, record string) string {
	for _, c := range header {
		if c > '~' || c < ' ' || strings.ContainsRune(` _-."'()`, c) || unicode.IsLetter(c) || unicode.IsDigit(c) {
			continue
		}
		if n := strings.Count(header, string(c)); n == strings.Count(record, string(c)) {
			return string(c)
		}
	}
	return ""
}

package survey

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/jsonscan"
	"github.com/dsload/dsload/internal/units"
)

const (
	maxFields  = 64      // fields of a file that are counted: one bit each
	maxName    = 200     // bytes of the name of one
	maxForms   = 1 << 10 // combinations of fields that hold a text
	maxGuesses = 16      // records of one form whose text is guessed
	maxChoices = 4       // fields of which one holds the text
)

// fields are those of the records of a file.
type fields struct {
	scan  jsonscan.Scanner
	index map[string]int      // places in File.Fields by name
	forms map[uint64]*form    // keys have the bits of the fields that hold a string
	first *example.FieldError // the first record's
}

// A form is a set of fields with a string that records have.
type form struct {
	n, row int64
	votes  map[choice]int64
	has    []string
	best   choice
}

// A choice is how a record may be read.
type choice struct {
	way   way
	field string
}

// A way is how the records of a file are read.
type way string

// The ways.
const (
	asText  way = "text"
	asChat  way = "chat"
	asPairs way = "pairs"
)

// decoded counts the fields of a record, and guesses how it is read.
func (l *look) decoded(rec *source.Record, layout example.Record, raw []byte) error {
	read := l.object
	if layout.Columns != nil {
		read = func(raw []byte) (uint64, error) { return l.row(layout, raw) }
	}
	bits, err := read(raw)
	if err == nil && rec.Format.HoldsChat() {
		err = l.shape(layout, raw)
	}
	if err != nil {
		return err
	}
	l.Decoded++
	f := l.fields.forms[bits]
	switch {
	case f == nil && len(l.fields.forms) == maxForms:
		return nil
	case f == nil:
		f = &form{row: rec.Row, votes: map[choice]int64{}}
		l.fields.forms[bits] = f
	}
	if f.n++; f.n > maxGuesses {
		return nil
	}
	e, err := l.worker.Guess(layout, raw)
	if err != nil {
		return err
	}
	l.fields.first, f.has = cmp.Or(l.fields.first, e), e.Has
	f.votes[l.guess(rec, layout, raw, bits, e)]++
	return nil
}

// guess returns how a record is read.
func (l *look) guess(rec *source.Record, layout example.Record, raw []byte, bits uint64, e *example.FieldError) choice {
	_, answer, _ := chat.PairOf(e.Has)
	prompt, target := advice.PairTemplates(e)
	switch text, ok := l.fields.index[defaultField]; {
	case rec.Format.HoldsChat():
		return choice{way: asChat}
	case ok && bits&(1<<text) != 0: // a build takes it, whatever else there is
		return choice{asText, defaultField}
	case (e.Chat != "" || answer != "" || layout.Columns != nil) && l.shape(layout, raw) == nil:
		return choice{way: asChat}
	case prompt != "":
		l.Prompt, l.Target = prompt, target
		return choice{way: asPairs}
	case e.Likely != "" && nameable(e.Likely):
		return choice{asText, e.Likely}
	}
	return choice{}
}

// shape counts a conversation.
func (l *look) shape(layout example.Record, raw []byte) error {
	var at func(int) []byte
	if layout.Columns != nil { // the row was read without an error
		at, _ = l.worker.Row(layout, raw)
	}
	shape, err := l.chat.Shape(raw, layout.Columns, at)
	if err == nil {
		if l.Shapes == nil {
			l.Shapes = map[chat.Shape]int64{}
		}
		l.Shapes[shape]++
	}
	return err
}

// object counts the fields of a JSON object. A bit is set for each that holds a string.
func (l *look) object(raw []byte) (bits uint64, err error) {
	s := &l.fields.scan
	s.Reset(raw)
	err = s.Members(func(key []byte) error {
		column, bit := l.field(key)
		first, start, has := s.Token(), s.Offset(), s.HasValue()
		if err := s.Skip(); err != nil {
			return err
		}
		is := jsonKinds[first]
		if n, isFloat := jsonscan.NumberLen(raw[start:s.Offset()]); is == "" && (isFloat || n == 0) { // 0 of NaN
			is = "float"
		}
		if is = cmp.Or(is, "int"); is == "string" {
			bits |= bit
		}
		column.count(is, has)
		return nil
	})
	if err == nil {
		err = s.End()
	}
	return bits, values.Problem(err)
}

// jsonKinds are the kinds of values by their first bytes; the others are numbers.
var jsonKinds = map[byte]string{'"': "string", '[': "list", '{': "object", 't': "bool", 'f': "bool", 'n': "null"}

// row is object for a row of CSV.
func (l *look) row(layout example.Record, raw []byte) (bits uint64, err error) {
	at, err := l.worker.Row(layout, raw)
	if err != nil {
		return 0, err
	}
	for i, name := range layout.Columns {
		text, is := string(at(i)), "string"
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			is = "int"
		} else if _, err := strconv.ParseFloat(text, 64); err == nil {
			is = "float"
		}
		column, bit := l.field([]byte(name))
		if column.count(is, text != ""); is == "string" {
			bits |= bit
		}
	}
	return bits, nil
}

// field returns a field by its name, and its bit; of a file with very many fields, nothing.
func (l *look) field(name []byte) (f *Field, bit uint64) {
	i, known := l.fields.index[string(name)]
	switch {
	case known:
	case len(l.Fields) == maxFields, len(name) > maxName:
		return nil, 0
	default:
		i = len(l.Fields)
		l.fields.index[string(name)] = i
		l.Fields = append(l.Fields, Field{Name: string(name), Types: map[string]int64{}})
	}
	return &l.Fields[i], 1 << i
}

func (f *Field) count(kind string, has bool) {
	if f != nil && has {
		f.Records++
		f.Types[kind]++
	}
}

// finish decides how the file is read, and counts the records that are not.
func (l *look) finish() {
	weights := map[way]int64{asText: l.plain}
	for _, f := range l.fields.forms {
		for c, n := range f.votes {
			if best := f.votes[f.best]; n > best || n == best && c.field < f.best.field {
				f.best = c
			}
		}
		weights[f.best.way] += f.n
	}
	for _, w := range []way{asText, asChat, asPairs} {
		if weights[w] > weights[l.way] || l.way == "" && weights[w] > 0 {
			l.way = w
		}
	}
	switch l.way {
	case asText:
		l.choose()
		fallthrough
	case "":
		l.Shapes, l.Prompt, l.Target = nil, "", ""
	}
	l.leaveOut()
}

// choose sets the fields of which the first that a record has is its text.
func (l *look) choose() {
	weights, before := map[string]int64{}, map[[2]string]int64{} // records with both fields whose text is the first
	for bits, f := range l.fields.forms {
		if f.best.way != asText {
			continue
		}
		weights[f.best.field] += f.n
		for name, i := range l.fields.index {
			if bits&(1<<i) != 0 {
				before[[2]string{f.best.field, name}] += f.n
			}
		}
	}
	l.choices = slices.SortedFunc(maps.Keys(weights), func(a, b string) int {
		return cmp.Or(cmp.Compare(before[[2]string{b, a}], before[[2]string{a, b}]), cmp.Compare(weights[b], weights[a]),
			strings.Compare(a, b))
	})
	l.choices = l.choices[:min(len(l.choices), maxChoices)]
	l.Text = strings.Join(l.choices, "|")
}

// leaveOut counts the records that are not read as the file is.
func (l *look) leaveOut() {
	var rest *form
	for bits, f := range l.fields.forms {
		has := func(name string) bool {
			i, ok := l.fields.index[name]
			return ok && bits&(1<<i) != 0
		}
		if l.way == "" || f.best.way == l.way && (l.way != asText || slices.Contains(l.choices, f.best.field)) ||
			slices.ContainsFunc(l.choices, has) {
			continue
		}
		l.Bad, l.Records = l.Bad+f.n, l.Records-f.n
		if rest == nil || f.row < rest.row {
			rest = f
		}
	}
	if rest == nil {
		return
	}
	what := "conversation"
	if l.way == asText {
		what = "text in " + (&example.FieldError{Field: l.Text}).Wanted()
	}
	l.problem(fault.Textf("row %s: no %s; the record has %s", units.Count(rest.row), what, strings.Join(rest.has, ", ")))
}

package survey

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/jsonscan"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize/wellformed"
)

const (
	maxFields   = 64      // of a file that are counted: one bit each
	maxForms    = 1 << 10 // combinations of fields that hold a text
	maxGuesses  = 16      // records of one form whose text is guessed
	maxMembers  = 8       // of an archive that are named
	maxProblems = 3       // of a file that are told
	maxChoices  = 4       // fields of which one holds the text
)

// A look is what is known of the file that is read.
type look struct {
	*File
	worker   *example.Worker
	chat     *chat.Worker
	scan     jsonscan.Scanner
	index    map[string]int // of Fields
	forms    map[uint64]*form
	plain    int64 // records that are text
	encoding report.IllFormed
	tooLong  bool             // a record is too long to come whole
	lacks    *frame.LackError // of such a record
	first    *example.FieldError
	err      error
}

// A form is a set of fields with a text that records have.
type form struct {
	n, row, tried int64
	votes         map[choice]int64
	has           []string
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

// file surveys one file, and once more where its records show that a build must be given other options.
func (s *surveyor) file(ctx context.Context, set *source.Set, in *source.Input, err error) *File {
	l := s.look(ctx, set, in, err)
	var flags []string
	var change func(*source.Options)
	field := l.choices
	if l.lacks != nil && len(field) == 0 {
		field = example.Usual(l.lacks.Has)
	}
	switch {
	case !in.Rereadable() || l.first == nil && l.lacks == nil:
		return l.File
	case l.tooLong && len(field) > 0: // a long text is read in pieces where nothing else is wanted of its record
		field = field[:1]
		change = func(o *source.Options) { o.AllColumns, o.TextField, o.Fields = false, field[0], field }
	case l.Records == 1 && len(in.Lists) > 0:
		flags = []string{"--records", in.Lists[0]}
		change = func(o *source.Options) { o.Records = in.Lists[0] }
	case l.first == nil:
		return l.File
	case l.first.Separator != "":
		flags = []string{"--delimiter", l.first.Separator}
		change = func(o *source.Options) { o.Delimiter = l.first.Separator[0] }
	case l.first.Names != nil && !slices.Equal(l.first.Has, l.first.Names):
		flags = []string{"--columns", strings.Join(l.first.Names, ",")}
		change = func(o *source.Options) { o.Columns = l.first.Names }
	default:
		return l.File
	}
	other := s.again(ctx, in, flags, change)
	switch {
	case other == nil || !other.Error.IsZero() || other.way == "" && flags != nil || other.Bad > l.Bad:
		return l.File
	case flags == nil:
		other.Text, other.choices, other.alone, other.way = field[0], field, true, asText
		other.Fields, other.Decoded = l.Fields, l.Decoded
	}
	return other
}

// look reads a file, or as much of it as Options.Limit allows.
func (s *surveyor) look(ctx context.Context, set *source.Set, in *source.Input, err error) *look {
	l := &look{File: &File{URI: in.URI, Format: string(in.Format), Bytes: in.Size,
		Compression: in.Compression}, index: map[string]int{}, forms: map[uint64]*form{}, chat: chat.NewReader()}
	f, formatErr := example.NewFormatter(example.FormatOptions{})
	if err = cmp.Or(err, formatErr); err == nil && set.NeedsOf(in) > s.Memory/2 {
		err = fault.Errorf("reading it takes %v of memory; raise {memory}", units.Size(set.NeedsOf(in)))
	}
	var reader *source.Reader
	if err == nil {
		l.worker = f.NewWorker().StopAt(ctx.Done())
		reader, err = set.FirstRecords(set.Len() - 1)
	}
	if err != nil {
		l.Error = reason(err)
		return l
	}
	defer reader.Close()
	var rec source.Record
	var raw []byte
	for read := int64(0); ctx.Err() == nil; {
		if raw, err = reader.Next(raw[:0], &rec); err != nil {
			break
		}
		l.record(&rec, raw)
		if read += int64(len(raw)); s.Limit > 0 && read >= s.Limit {
			l.Sampled = true
			break
		}
	}
	if err != nil && err != io.EOF && !errors.Is(err, cause.NoDocuments) {
		l.Error = reason(err)
	}
	at := reader.Note()
	l.finish()
	if text, rows, err := set.Holds(set.Len() - 1); l.Sampled && err == nil {
		switch {
		case rows >= 0:
			l.Estimated = rows
		case text > 0 && at.Offset > 0:
			l.Estimated = int64(float64(l.Records) * max(1, float64(text)/float64(at.Offset)))
		}
	}
	l.Notes = append(l.Notes, report.Skipped(at)...)
	return l
}

// reason returns why a file cannot be read, or be read on.
func reason(err error) fault.Text {
	if input, ok := errors.AsType[*cause.InputError](err); ok && input.Hint != "" {
		return fault.Textf("%v; %s", input.Err, input.Hint)
	} else if ok {
		err = input.Err
	}
	return fault.Textf("%v", err)
}

// record takes a record, or a piece of one.
func (l *look) record(rec *source.Record, raw []byte) {
	if rec.Err != nil {
		l.bad(rec, max(1, rec.Rows), rec.Err)
		return
	}
	if !wellformed.Valid(raw) {
		l.encoding.Add(raw)
	}
	if !rec.Last {
		return
	}
	layout := example.Record{Columns: rec.Columns, Comma: rec.Comma, Decoded: rec.Decoded}
	var bits uint64
	var err error
	switch {
	case rec.Skipped:
	case rec.Decoded, rec.Format.Template() != "":
		l.plain++
		l.alone = l.alone || rec.Format == source.JSONL // all that is wanted of its record
	case rec.Columns != nil:
		bits, err = l.row(layout, raw)
	default:
		bits, err = l.object(raw)
	}
	if err == nil && rec.Format.HoldsChat() {
		err = l.shape(layout, raw)
	}
	if err != nil {
		l.bad(rec, 1, err)
		return
	}
	l.Records += max(1, rec.Rows)
	l.member(rec)
	if !rec.Decoded && !rec.Skipped && rec.Format.Template() == "" {
		l.Decoded++
		l.judge(bits, rec, layout, raw)
	}
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

// bad counts what a build would end at, or leave out.
func (l *look) bad(rec *source.Record, n int64, err error) {
	l.Bad += n
	l.tooLong = l.tooLong || errors.Is(err, cause.TooLarge) || errors.As(err, &l.lacks)
	var located *source.RecordError
	if errors.As(err, &located) {
		err = located.Cause
	}
	where := "row " + units.Count(rec.Row)
	if rec.Member != "" {
		where += " of " + rec.Member
	}
	if rec.Offset > 0 {
		where += " at byte " + units.Count(rec.Offset)
	}
	l.problem(fault.Textf("%s: %v", where, err))
}

func (l *look) problem(text fault.Text) {
	if len(l.Problems) < maxProblems {
		l.Problems = append(l.Problems, text)
	}
}

// member counts a record of an archive's file.
func (l *look) member(rec *source.Record) {
	if rec.Member == "" {
		return
	}
	n := len(l.Members)
	if n == 0 || l.Members[n-1].Name != rec.Member {
		l.Members, n = append(l.Members, Member{Name: rec.Member, Format: rec.Format}), n+1
	}
	if l.Members[n-1].Records++; n > maxMembers { // the last one is of those that are not named
		l.Members, l.MoreMembers = l.Members[:maxMembers], l.MoreMembers+1
	}
}

// object notes the fields of a JSON object. A bit is set for each that holds a text.
func (l *look) object(raw []byte) (bits uint64, err error) {
	s := &l.scan
	s.Reset(raw)
	err = s.Members(func(key []byte) error {
		name, kind, start, has := string(key), s.Token(), s.Offset(), s.HasValue()
		if err := s.Skip(); err != nil || !has {
			return err
		}
		is := jsonKinds[kind]
		if n, float := jsonscan.NumberLen(s.From(start)); is == "" && n > 0 && !float {
			is = "int"
		}
		bits |= l.field(name, cmp.Or(is, "float"))
		return nil
	})
	if err == nil {
		err = s.End()
	}
	return bits, values.Problem(err)
}

// jsonKinds are the kinds of values by their first bytes; others are numbers.
var jsonKinds = map[byte]string{'"': "string", '[': "list", '{': "object", 't': "bool", 'f': "bool"}

// row is object for a row of CSV.
func (l *look) row(layout example.Record, raw []byte) (bits uint64, err error) {
	at, err := l.worker.Row(layout, raw)
	if err != nil {
		return 0, err
	}
	for i, name := range layout.Columns {
		text := string(at(i))
		is := "string"
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			is = "int"
		} else if _, err := strconv.ParseFloat(text, 64); err == nil {
			is = "float"
		}
		if text != "" {
			bits |= l.field(name, is)
		}
	}
	return bits, nil
}

// field counts a value of a field, and returns its bit if that is a text.
func (l *look) field(name, kind string) uint64 {
	i, known := l.index[name]
	if !known && len(l.Fields) == maxFields {
		l.MoreFields = true
		return 0
	} else if !known {
		i = len(l.Fields)
		l.index[name] = i
		l.Fields = append(l.Fields, Field{Name: name, Types: map[string]int64{}})
	}
	l.Fields[i].Records++
	l.Fields[i].Types[kind]++
	if kind != "string" {
		return 0
	}
	return 1 << i
}

// judge counts a record by the fields that hold its texts, and guesses how it is read.
func (l *look) judge(bits uint64, rec *source.Record, layout example.Record, raw []byte) {
	f := l.forms[bits]
	if f == nil && len(l.forms) < maxForms {
		f = &form{row: rec.Row, votes: map[choice]int64{}}
		l.forms[bits] = f
	} else if f == nil {
		return
	}
	if f.n++; f.tried >= maxGuesses {
		return
	}
	f.tried++
	e, err := l.worker.Guess(layout, raw)
	if err != nil {
		return
	}
	f.has = e.Has
	if l.first == nil {
		l.first = e
	}
	c := choice{}
	_, answer, _ := chat.PairOf(e.Has)
	prompt, target := advice.PairTemplates(e.Has)
	switch text, ok := l.index[defaultField]; {
	case rec.Format.HoldsChat():
		c.way = asChat
	case ok && bits&(1<<text) != 0:
		c = choice{asText, defaultField}
	case (e.Chat != "" || answer != "" || layout.Columns != nil) && l.shape(layout, raw) == nil:
		c.way = asChat
	case prompt != "":
		c.way, l.Prompt, l.Target = asPairs, prompt, target
	case e.Likely != "" && nameable(e.Likely):
		c = choice{asText, e.Likely}
	}
	f.votes[c]++
}

// finish decides how the file is read.
func (l *look) finish() {
	l.Encoding, _ = l.encoding.Looks()
	best := map[*form]choice{}
	ways := map[way]int64{asText: l.plain}
	for _, f := range l.forms {
		for c, n := range f.votes {
			if old := best[f]; n > f.votes[old] || n == f.votes[old] && c.field < old.field {
				best[f] = c
			}
		}
		ways[best[f].way] += f.n
	}
	if l.plain > 0 && len(l.forms) == 0 {
		l.way = asText
	}
	for _, w := range []way{asText, asChat, asPairs} {
		if ways[w] > ways[l.way] && w != "" || l.way == "" && ways[w] > 0 {
			l.way = w
		}
	}
	if l.way != asChat {
		l.Shapes = nil
	}
	if l.way != asPairs {
		l.Prompt, l.Target = "", ""
	}
	if l.way == asText {
		l.choose(best)
	}
	if l.way != "" {
		l.leftOut(best)
	}
}

// choose sets the fields of which the first that a record has is its text.
func (l *look) choose(best map[*form]choice) {
	weights := map[string]int64{}
	before := map[[2]string]int64{} // records with both fields whose text is the first
	for bits, f := range l.forms {
		c := best[f]
		if c.way != asText {
			continue
		}
		weights[c.field] += f.n
		for name, i := range l.index {
			if bits&(1<<i) != 0 && name != c.field {
				before[[2]string{c.field, name}] += f.n
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

// leftOut counts the records that are not read as the file is.
func (l *look) leftOut(best map[*form]choice) {
	var rest form
	for bits, f := range l.forms {
		c := best[f]
		if c.way == l.way && (l.way != asText || slices.Contains(l.choices, c.field)) ||
			slices.ContainsFunc(l.choices, func(name string) bool {
				i, ok := l.index[name]
				return ok && bits&(1<<i) != 0
			}) {
			continue
		}
		if rest.n += f.n; rest.row == 0 || f.row < rest.row {
			rest.row, rest.has = f.row, f.has
		}
	}
	if rest.n == 0 {
		return
	}
	l.Bad += rest.n
	l.Records -= rest.n
	what := "a conversation"
	if l.way == asText {
		what = (&example.FieldError{Field: l.Text}).Wanted()
	}
	l.problem(fault.Textf("row %s: no %s; the record has %s", units.Count(rest.row), what, strings.Join(rest.has, ", ")))
}

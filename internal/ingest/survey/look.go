package survey

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/tokenize/wellformed"
)

const (
	maxMembers  = 8 // members of an archive that are named
	maxProblems = 3 // problems of a file that are told
)

// A look is what is known of the file that is read.
type look struct {
	*File
	worker   *example.Worker
	chat     *chat.Worker
	fields   fields
	plain    int64 // records that are text
	encoding report.IllFormed
	pages    counts.Counts
	tooLong  bool             // a record is too long to come whole
	lacks    *frame.LackError // such a record
}

// file surveys one file, and once more where its records show that a build must be given other options.
func (s *surveyor) file(ctx context.Context, set *source.Set, in *source.Input, err error) *File {
	l := s.look(ctx, set, in, err)
	first := cmp.Or(l.fields.first, &example.FieldError{})
	var flags []string
	var change func(*source.Options)
	if l.lacks != nil && len(l.choices) == 0 {
		l.choices = example.Usual(l.lacks.Has)
	}
	switch {
	case !in.Rereadable():
		return l.File
	case l.tooLong && len(l.choices) > 0: // a long text is read in pieces where nothing else is wanted of its record
		l.choices = l.choices[:1]
		change = func(o *source.Options) { o.AllColumns, o.TextField, o.Fields = false, l.choices[0], l.choices }
	case l.Records == 1 && len(in.Lists) > 0:
		flags = []string{"--records", in.Lists[0]}
		change = func(o *source.Options) { o.Records = in.Lists[0] }
	case first.Separator != "":
		flags = []string{"--delimiter", first.Separator}
		change = func(o *source.Options) { o.Delimiter = first.Separator[0] }
	case first.Names != nil && !slices.Equal(first.Has, first.Names):
		flags = []string{"--columns", strings.Join(first.Names, ",")}
		change = func(o *source.Options) { o.Columns = first.Names }
	default:
		return l.File
	}
	other := s.again(ctx, in, change)
	switch {
	case other == nil || !other.Error.IsZero() || other.way == "" && flags != nil || other.Bad > l.Bad:
		return l.File
	case flags == nil:
		other.Text, other.choices, other.alone, other.way = l.choices[0], l.choices, true, asText
		other.Fields, other.Decoded = l.Fields, l.Decoded
	}
	other.flags = flags
	return other
}

// again surveys one file with other options.
func (s *surveyor) again(ctx context.Context, in *source.Input, change func(*source.Options)) (found *File) {
	o := s.options(ctx, cmp.Or(in.Path, in.URI))
	change(&o)
	o.Each = func(set *source.Set, in *source.Input, _ skip.Kind, err error) error {
		found = s.look(ctx, set, in, err).File
		return nil
	}
	if set, err := source.Open(ctx, o); err != nil || set.Close() != nil {
		return nil
	}
	return found
}

// look reads a file, or as much of it as Options.Limit allows.
func (s *surveyor) look(ctx context.Context, set *source.Set, in *source.Input, err error) *look {
	l := &look{File: &File{URI: in.URI, Format: string(in.Format), Bytes: in.Size, Compression: in.Compression},
		chat: chat.NewReader(), fields: fields{index: map[string]int{}, forms: map[uint64]*form{}}}
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
		l.fail(err)
		return l
	}
	defer reader.Close()
	var rec source.Record
	var raw []byte
	for read := int64(0); err == nil && ctx.Err() == nil && !l.Sampled; {
		if raw, err = reader.Next(raw[:0], &rec); err == nil {
			l.record(&rec, raw)
			read += int64(len(raw))
			l.Sampled = s.Limit > 0 && read >= s.Limit
		}
	}
	if err != nil && err != io.EOF && !errors.Is(err, cause.NoDocuments) {
		l.fail(err)
	}
	l.finish()
	l.Notes = slices.Concat(report.Skipped(reader.Note()), report.Rendered(l.pages))
	name, iconv := l.encoding.Looks()
	if l.Encoding = name; name != "" && in.IsPlainFile() {
		l.Notes = append(l.Notes, fault.Textf("convert it with %s and build from that", source.Iconv(iconv, in.URI)))
	}
	return l
}

// fail notes why a file cannot be read, or be read on.
func (f *File) fail(err error) {
	f.err, f.Error = err, fault.Textf("%v", err)
	if input, ok := errors.AsType[*cause.InputError](err); ok && input.Hint != "" {
		f.Error = fault.Textf("%v; %s", input.Err, input.Hint)
	} else if ok {
		f.Error = fault.Textf("%v", input.Err)
	}
}

// record takes a record, or a piece of one.
func (l *look) record(rec *source.Record, raw []byte) {
	if rec.Err != nil {
		l.bad(rec, rec.Err)
		return
	}
	if !wellformed.Valid(raw) {
		l.encoding.Add(raw)
	}
	if rec.Decoded && rec.First && work.IsMarkup(raw) {
		l.pages.Markup++
	}
	if !rec.Last {
		return
	}
	layout := example.Record{Columns: rec.Columns, Comma: rec.Comma, Decoded: rec.Decoded}
	var err error
	if rec.Skipped || rec.Decoded || rec.Format.Template() != "" {
		l.plain++
		l.alone = l.alone || rec.Decoded && rec.Format == source.JSONL // all that is wanted of its record
	} else {
		err = l.decoded(rec, layout, raw)
	}
	if err != nil {
		l.bad(rec, err)
		return
	}
	l.Records += max(1, rec.Rows)
	l.member(rec)
}

// bad counts what a build would end at, or leave out.
func (l *look) bad(rec *source.Record, err error) {
	l.Bad += max(1, rec.Rows)
	l.tooLong = l.tooLong || errors.Is(err, cause.TooLarge) || errors.As(err, &l.lacks)
	if located, ok := errors.AsType[*source.RecordError](err); ok {
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
	n := len(l.Members)
	switch {
	case rec.Member == "":
	case n > 0 && l.Members[n-1].Name == rec.Member:
		l.Members[n-1].Records++
	case n == maxMembers:
		l.MoreMembers++
	default:
		l.Members = append(l.Members, Member{rec.Member, rec.Format, 1})
	}
}

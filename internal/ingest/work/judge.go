package work

import (
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/job"
)

// judgeFields reports whether the fields of a record let it stay. If not, or if the record is bad,
// the document says so.
func (w *Worker) judgeFields(j *job.Job, d *job.Document) bool {
	fields := w.Filter.Fields()
	all := uint64(1)<<len(fields) - 1
	switch {
	case d.Skipped:
		d.Dropped, d.Has = filter.ByWhere, all
		return false
	case d.Decided == all:
		d.Has = all
		return true
	}
	data := j.Raw[d.Raw.Start:d.Raw.End]
	var v filter.Verdict
	switch {
	case len(d.Columns) > 0:
		var at func(int) []byte
		if at, d.Bad = w.formatter.Row(d.Layout(), data); d.Bad == nil {
			v = w.Filter.Row(d.Columns, at, d.Decided)
		}
	case d.Decoded:
		d.Bad = fault.Errorf("%w: the record is text without fields, and {where} asks for %s", example.ErrUnknownField,
			fields[0])
	default:
		v, d.Bad = w.Filter.JSON(data, d.Decided)
	}
	d.Has, d.AsText = v.Has, v.AsText
	if d.Bad == nil && d.Ordinal == 0 && d.Has != all {
		if d.Names = d.Columns; d.Names == nil {
			d.Names = example.FieldNames(data)
		}
	}
	if d.Bad == nil && !v.Holds {
		d.Dropped = filter.ByWhere
	}
	return v.Holds
}

// judgeText reports whether the text of a record lets it stay, and notes the key by which Dedup
// compares it.
func (w *Worker) judgeText(j *job.Job, d *job.Document) bool {
	f := w.text
	if d.Dropped = w.Filter.Text(f.Prompt, f.Target); d.Dropped != filter.Kept {
		return false
	}
	d.Key.Start = len(j.Keys)
	j.Keys = w.sketcher.Append(j.Keys, f.Prompt, f.Target)
	d.Key.End = len(j.Keys)
	return true
}

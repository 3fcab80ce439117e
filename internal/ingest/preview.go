package ingest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/preview"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/skip"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
)

// previewKeys is how many bytes of keys Dedup compares in a preview: fewer than it keeps in memory.
const previewKeys = 48 << 10

// maxMore is how many inputs are named that a preview does not look at.
const maxMore = 16

// A previewer takes the first documents of inputs through the stages of a build, one at a time.
type previewer struct {
	b        *build
	f        *flusher
	w        *work.Worker
	recorder *preview.Recorder
	empty    error // why the last input that holds no documents has none
	failed   error // what ends the build first
}

// Preview reads the first documents of each input and returns what a build would make of them. It writes
// nothing, except that a tokenizer of the Hugging Face Hub is downloaded into the cache of the build. An
// error is the one that the build would end with; what was found before it is returned too.
func Preview(ctx context.Context, o option.Options, documents int) (_ *preview.Preview, err error) {
	if documents < 1 || documents > preview.MaxDocuments {
		return nil, fault.BadOption("preview", documents, "must be from 1 to %d", preview.MaxDocuments)
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Stdin != nil {
		stdin := setup.NewInterruptible(ctx, o.Stdin)
		defer stdin.Close()
		o.Stdin = stdin
	}
	if o.Append && !remote.Writable(o.Out) {
		if _, err := openAddition(&o); err != nil {
			return nil, err
		}
	}
	o.Append, o.Overwrite = false, false // where rows go does not change them
	b := newBuild(o, nil)
	b.bucket, b.resumes = remote.Writable(o.Out), false
	unread, failed := b.openPassing(ctx)
	if b.Prepared == nil {
		return nil, failed
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.CheckEnds(); err != nil {
		return nil, err
	}
	v := &previewer{b: b, w: b.newWorker(b.Memory.CacheBytes), recorder: preview.NewRecorder(b.Prepared, documents)}
	if v.f, err = b.newFlusher(ctx, dataset.Discard{}, &dataset.Resume{}, limitSeen); err != nil {
		return nil, err
	}
	v.f.emit = v.emit
	for phase := 0; phase < len(b.Phases) && err == nil; phase++ {
		err = v.phase(ctx, phase)
	}
	v.recorder.Preview.Inputs = append(v.recorder.Preview.Inputs, unread...)
	p := v.recorder.Finish(v.notes()...)
	return p, errors.Join(cmp.Or(failed, err, v.failed), v.f.closeSeen())
}

// openPassing opens the build. Inputs that cannot be opened are returned, with the error that ends the build.
func (b *build) openPassing(ctx context.Context) (unread []preview.Input, failed error) {
	inMemory := func(_ int, o *source.Options) { o.ScratchDir = "" }
	failed = b.open(ctx, setup.Reading{Narrow: inMemory}, b.needs)
	if failed == nil || ctx.Err() != nil || slices.Contains(b.opts.Sources, "-") {
		return nil, failed
	}
	b.Prepared = nil
	err := b.open(ctx, setup.Reading{Narrow: func(phase int, o *source.Options) {
		inMemory(phase, o)
		o.Each = func(_ *source.Set, in *source.Input, why skip.Kind, err error) error {
			if err != nil && (why == skip.Readable || !in.Listed) {
				unread = append(unread, preview.Input{URI: uris.Shown(in.URI), Bytes: in.Size, Error: fault.Textf("%v", err)})
			}
			return nil
		}
	}}, b.needs)
	if err == nil && b.Phases[0].Set.Len() == 0 {
		err = b.Close()
		b.Prepared = nil
	}
	return unread, cmp.Or(failed, err)
}

// limitSeen compares the first documents: what is kept of them has no files.
func limitSeen(f *flusher) error {
	compared := 0 // bytes of keys
	f.isCopy = func(_ int64, key []byte) (bool, error) {
		if compared += len(key); compared > previewKeys {
			return false, nil
		}
		return f.seen.Add(key)
	}
	return nil
}

// notes are those about all documents that were looked at.
func (v *previewer) notes() (notes []fault.Text) {
	s := &v.f.state
	for i, field := range v.b.Filter.Fields() {
		if s.Has&(1<<i) == 0 {
			notes = append(notes, fault.Textf("{where}: of the records that were looked at, %s",
				advice.NoField(field.String(), "the first has", s.Names)))
		}
	}
	return slices.Concat(notes, v.b.Warnings(), report.Found(&s.Counts), report.Rendered(s.Counts), report.UnusedFields(s.Counts),
		s.IllFormed.Warnings(s.Replaced), v.b.EndNotes(), s.Lines.Notes())
}

// phase looks at the inputs of a phase.
func (v *previewer) phase(ctx context.Context, number int) error {
	phase, p := &v.b.Phases[number], v.recorder.Preview
	v.f.state.Phase, v.b.current = number, phase
	v.w.Begin(phase.Formatter, false, ctx.Done())
	p.Notes = append(p.Notes, phase.Set.Notes()...)
	shown, err := preview.Choose(phase.Set)
	if err != nil {
		return err
	}
	p.MoreInputs += phase.Set.Len() - len(shown)
	for i := 0; i < phase.Set.Len() && len(p.More) < maxMore; i++ {
		if !slices.Contains(shown, i) {
			p.More = append(p.More, uris.Shown(phase.Set.URI(i)))
		}
	}
	for _, i := range shown {
		in, err := phase.Set.Input(i)
		if err != nil {
			return err
		}
		v.recorder.BeginInput(in, number)
		if err := v.input(ctx, i); err != nil {
			err = advice.Of(advice.Rows, v.b.Facts(), err)
			if v.failed = cmp.Or(v.failed, err); ctx.Err() != nil {
				return err
			}
			if phase.Set.Len() > 1 {
				v.recorder.Failed(err)
			}
			v.f.stopped = ""
			v.f.cutter.Reset()
		}
	}
	if v.recorder.Empty() && v.failed == nil {
		return v.empty
	}
	return nil
}

// input reads the first documents of an input: those that are shown, and more for the estimate.
func (v *previewer) input(ctx context.Context, i int) error {
	set := v.b.current.Set
	reader, err := set.FirstRecords(i)
	if err != nil {
		return err
	}
	defer reader.Close()
	lanes := job.NewLanes(0, 1)
	uri := func(int) string { return set.URI(i) }
	reading := read.Stage{Records: reader, Lanes: &lanes, Ledger: v.b.Ledger, Lease: v.b.lease, URI: uri,
		Waiting: &v.b.waits.reader}
	if v.b.opts.Map != "" {
		if reading.Mapping, err = v.b.startMap(ctx, ctx, reader, uri, v.f); err != nil {
			return err
		}
		defer reading.Mapping.Close()
		reading.Records = reading.Mapping
	}
	ended := false
	for more := true; more && v.recorder.WantsMore(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		j, err := reading.One(ctx)
		if errors.Is(err, cause.NoDocuments) {
			v.empty = err
		}
		if ended = err == io.EOF || errors.Is(err, cause.NoDocuments); ended {
			break
		}
		if err != nil {
			return err
		}
		j.Documents[0].Input = i
		more, err = v.step(j)
		lanes.Recycle(j)
		v.w.Trim()
		if err != nil {
			return err
		}
	}
	reading.Note()
	return v.recorder.EndInput(set, i, reading.Noted(), ended)
}

// step takes a job of one record through the stages, and reports whether the next is wanted.
func (v *previewer) step(j *job.Job) (more bool, err error) {
	d := &j.Documents[0]
	v.recorder.Begin(j, d)
	err = v.document(j, d)
	if d.Last || err != nil {
		v.recorder.End(false)
	}
	if err != nil || v.f.stopped == "" && (d.Last || !v.recorder.TooLong()) {
		return true, err
	}
	if !d.Last {
		v.recorder.End(true)
	}
	v.f.stopped = ""
	v.f.cutter.Reset()
	return false, nil
}

// document takes a record through the stages.
func (v *previewer) document(j *job.Job, d *job.Document) error {
	f := v.f
	start := time.Now()
	if !v.w.Do(j) {
		return ErrInterrupted
	}
	v.recorder.Tokenized(d, time.Since(start).Seconds())
	if err := cmp.Or(d.Err, d.Bad); err != nil {
		v.recorder.Bad(err)
		return f.reject(d, err)
	}
	before := f.state.Counts.Clone()
	err := f.document(j, d)
	f.unused.countInto(&f.state.Counts, j)
	if err != nil || !d.Last {
		return err
	}
	if f.state.Truncated > before.Truncated {
		v.recorder.Cut()
	}
	split := splitTrain
	if f.state.Verdict == heldout.ToVal {
		split = splitVal
	}
	var shown []byte // its text, or its record where there is none yet
	switch {
	case d.Dropped != filter.ByWhere && d.Dropped != filter.ByMap:
		shown = v.w.Shown()
	case len(d.Columns) == 0:
		shown = j.Raw
	}
	v.recorder.Judged(split, &before, &f.state.Counts, split == splitVal && f.valFull(), shown)
	return nil
}

// emit is what the cutter calls with each example. Budgets of the split train do not end a preview.
func (v *previewer) emit(ex *example.Example) error {
	s := &v.f.state
	switch {
	case s.Verdict == heldout.ToNeither, s.Verdict == heldout.ToVal && v.f.valFull():
		return nil
	case v.b.opts.Pack == pack.BFD && ex.Part > 0:
		v.recorder.Cut() // packing takes the first chunk alone
		return nil
	case s.Verdict == heldout.ToVal:
		s.Val++
		v.f.hold.Have++
	}
	v.recorder.Example(ex)
	return nil
}

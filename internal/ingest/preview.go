package ingest

import (
	"cmp"
	"context"
	"errors"
	"github.com/dsload/dsload/internal/dataset"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/heldout"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/read"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/remote"
)

const (
	// MaxPreview is the most documents of an input that a preview shows.
	MaxPreview = 1000
	// PreviewSample is how many bytes of the text of an input the estimate is made of, or of more that are shown.
	PreviewSample = 128 << 10
)

const (
	previewInputs   = 8         // that are looked at
	previewListed   = 10_000    // of which these are chosen
	previewPieces   = 256 << 10 // of a document, after which its rest is not read
	previewExamples = 4         // of a document that are shown
	previewTokens   = 1 << 20   // of all examples that are shown
	previewText     = 240       // bytes of the text of a document that was left out
	previewKeys     = 48 << 10  // bytes of keys that dedup compares: below what it keeps in memory
)

// A previewer takes the first documents of inputs through the stages of a build, one at a time.
type previewer struct {
	b      *build
	f      *flusher
	w      *work.Worker
	n      int // documents of an input that are shown
	doc    PreviewDocument
	sample sample // of the input
	looked int    // inputs
	empty  error  // of the last input that holds no documents
	kept   int    // tokens of all examples
	estimator
}

// Preview reads the first documents of each input and returns what a build would make of them. It writes
// nothing, except that a tokenizer of the Hugging Face Hub is downloaded into the cache of the build. An
// error is the one that the build would end with; what was found before it is returned too.
func Preview(ctx context.Context, o option.Options, documents int) (_ *Previewed, err error) {
	if documents < 1 || documents > MaxPreview {
		return nil, fault.BadOption("preview", documents, "must be from 1 to %d", MaxPreview)
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
	o.Append, o.Overwrite = false, false // where rows go does not change them
	b := newBuild(o, nil)
	b.bucket, b.resumes = remote.Writable(o.Out), false
	inMemory := func(_ int, o *source.Options) { o.ScratchDir = "" }
	if err := b.open(ctx, setup.Reading{Narrow: inMemory}, b.needs); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.CheckEnds(); err != nil {
		return nil, err
	}
	v := &previewer{b: b, n: documents, w: b.newWorker(b.Memory.CacheBytes)}
	if v.f, err = b.newFlusher(ctx, dataset.Discard{}, &dataset.Resume{}, limitSeen); err != nil {
		return nil, err
	}
	v.f.emit = v.take
	p := &Previewed{Tokenizer: b.Tokenizer, Memory: b.Memory, Options: b.opts}
	err = v.phases(ctx, p)
	for i, field := range b.Filter.Fields() {
		if v.f.state.Has&(1<<i) == 0 {
			p.Notes = append(p.Notes, fault.Textf("{where}: of the records that were looked at, %s",
				advice.NoField(field.String(), "the first has", v.f.state.Names)))
		}
	}
	p.Notes = slices.Concat(p.Notes, b.Warnings(), report.Rendered(v.f.state.Counts), report.UnusedFields(v.f.state.Counts),
		v.f.state.IllFormed.Warnings(v.f.state.Replaced), []fault.Text{b.EndNote()})
	p.Notes = slices.DeleteFunc(append(p.Notes, v.f.state.Lines.Notes()...), fault.Text.IsZero)
	p.Estimate = v.estimate()
	return p, errors.Join(err, v.f.closeSeen())
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

// phases looks at the inputs of all phases.
func (v *previewer) phases(ctx context.Context, p *Previewed) error {
	for number := range v.b.Phases {
		phase := &v.b.Phases[number]
		v.f.state.Phase, v.b.current = number, phase
		v.w.Begin(phase.Formatter, false, ctx.Done())
		p.Notes = append(p.Notes, phase.Set.Notes()...)
		shown, err := previewed(phase.Set)
		if err != nil {
			return err
		}
		p.MoreInputs += phase.Set.Len() - len(shown)
		for _, i := range shown {
			in, err := phase.Set.Input(i)
			if err != nil {
				return err
			}
			p.Inputs = append(p.Inputs, PreviewInput{URI: uris.Shown(in.URI), Val: number == setup.Val,
				Format:      in.Format,
				Compression: in.Compression, Bytes: in.Size})
			if err := v.input(ctx, &p.Inputs[len(p.Inputs)-1], i); err != nil {
				return advice.Of(advice.Rows, v.b.Facts(), err)
			}
		}
		if p.MoreInputs == 0 && !slices.ContainsFunc(p.Inputs, func(in PreviewInput) bool {
			return len(in.Documents) > 0
		}) {
			return v.empty
		}
	}
	return nil
}

// previewed chooses the inputs that are looked at, in order: of many the first of each format, the largest,
// and then the first.
func previewed(set *source.Set) (shown []int, err error) {
	var sizes []int64
	formats, largest := map[source.Format]bool{}, 0
	for i := range min(set.Len(), previewListed) {
		in, err := set.Input(i)
		if err != nil {
			return nil, err
		}
		if sizes = append(sizes, in.Size); in.Size > sizes[largest] {
			largest = i
		}
		if !formats[in.Format] && len(shown) < previewInputs-1 {
			shown, formats[in.Format] = append(shown, i), true
		}
	}
	if !slices.Contains(shown, largest) {
		shown = append(shown, largest)
	}
	for i := 0; i < len(sizes) && len(shown) < previewInputs; i++ {
		if !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	slices.Sort(shown)
	return shown, nil
}

// input reads the first documents of an input: those that are shown, and more for the estimate.
func (v *previewer) input(ctx context.Context, p *PreviewInput, i int) error {
	reader, err := v.b.current.Set.FirstRecords(i)
	if err != nil {
		return err
	}
	defer reader.Close()
	lanes := job.NewLanes(0, 1)
	uri := func(int) string { return v.b.current.Set.URI(i) }
	reading := read.Stage{Records: reader, Lanes: &lanes, Ledger: v.b.Ledger, Lease: v.b.lease, URI: uri,
		Waiting: &v.b.waits.reader}
	if v.b.opts.Map != "" {
		if reading.Mapping, err = v.b.startMap(ctx, ctx, reader, uri, v.f); err != nil {
			return err
		}
		defer reading.Mapping.Close()
		reading.Records = reading.Mapping
	}
	v.sample = sample{}
	var sampled int64
	for sampled < PreviewSample || len(p.Documents) < v.n {
		if err := ctx.Err(); err != nil {
			return err
		}
		j, err := reading.One(ctx)
		if err == io.EOF || errors.Is(err, cause.NoDocuments) {
			p.Ended = true
			if err != io.EOF {
				v.empty = err
			}
			break
		}
		if err != nil {
			return err
		}
		sampled += int64(len(j.Raw))
		j.Documents[0].Input = i
		more, err := v.step(p, j)
		lanes.Recycle(j)
		v.w.Trim()
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	v.looked++
	reading.Note()
	return v.estimator.input(v.b.current.Set, i, &v.sample, reading.Noted(), p.Ended)
}

// step takes a job of one record through the stages, and reports whether the next is wanted.
func (v *previewer) step(p *PreviewInput, j *job.Job) (more bool, err error) {
	d := &j.Documents[0]
	if err = v.document(j, d); d.Last || err != nil {
		v.sample.add(&v.doc)
		if len(p.Documents) < v.n {
			p.Documents = append(p.Documents, v.doc)
		}
	}
	if err == nil && (v.f.stopped != "" || !d.Last && v.doc.Bytes >= previewPieces) {
		v.endPartial(p, d)
		return false, nil
	}
	return true, err
}

// endPartial ends an input inside a document that is too long, or where a budget is reached.
func (v *previewer) endPartial(p *PreviewInput, d *job.Document) {
	if !d.Last {
		v.doc.Partial = true
		v.sample.add(&v.doc)
		if len(p.Documents) < v.n {
			p.Documents = append(p.Documents, v.doc)
		}
	}
	v.f.stopped = ""
	v.f.cutter.Reset()
}

// document takes a record through the stages.
func (v *previewer) document(j *job.Job, d *job.Document) error {
	f := v.f
	if d.First {
		v.doc = PreviewDocument{Record: d.Row, Member: d.Member}
	}
	if d.Skipped {
		v.doc.Unread = d.Rows
	}
	start := time.Now()
	if !v.w.Do(j) {
		return ErrInterrupted
	}
	v.sample.seconds += time.Since(start).Seconds()
	v.doc.Shape = string(d.Shape)
	v.doc.Bytes += d.TextBytes
	v.doc.Replaced += d.Replaced
	if err := cmp.Or(d.Err, d.Bad); err != nil {
		return v.bad(d, err)
	}
	before := f.state.Counts
	reasons := report.LeftOut(before)
	err := f.document(j, d)
	f.unused.countInto(&f.state.Counts, j)
	if err != nil || !d.Last {
		return err
	}
	switch v.doc.Cut = v.doc.Cut || f.state.Truncated > before.Truncated; {
	case v.doc.NumExamples == 0:
		v.doc.LeftOut, v.doc.Text = v.whyLeftOut(reasons), v.beginning(j, d)
	case f.state.Verdict == heldout.ToVal:
		v.doc.Split = splitVal
	default:
		v.doc.Split = splitTrain
	}
	return nil
}

// bad notes a bad record, or ends the preview with what the build would end with.
func (v *previewer) bad(d *job.Document, cause error) error {
	err := v.f.reject(d, cause)
	var located *source.RecordError
	if errors.As(cause, &located) {
		cause = located.Cause
	}
	v.doc.LeftOut = fault.Textf("it is a bad record: %v", cause)
	return err
}

// whyLeftOut says which of the counts of reasons went up.
func (v *previewer) whyLeftOut(before map[string]int64) fault.Text {
	for reason, n := range report.LeftOut(v.f.state.Counts) {
		if n == before[reason] {
			continue
		}
		switch {
		case reason == string(filter.Copied), reason == string(filter.ValCopy):
			return fault.Textf("{dedup}: it is a copy of an earlier document")
		case slices.Contains(filter.Reasons, filter.Reason(reason)):
			return fault.Textf("%v", fault.Option(reason))
		}
		return fault.Plain("it is " + reason)
	}
	if v.f.state.Verdict == heldout.ToVal && v.f.valFull() {
		return fault.Textf("the split val has {max-val-examples}")
	}
	return fault.Textf("no token of it within {max-length} is trained on")
}

// beginning returns the beginning of the text of a document, or of its record where there is no text yet.
func (v *previewer) beginning(j *job.Job, d *job.Document) string {
	var text []byte
	switch {
	case d.Dropped != filter.ByWhere && d.Dropped != filter.ByMap:
		text = v.w.Shown()
	case len(d.Columns) == 0:
		text = j.Raw
	}
	if len(text) > previewText {
		for text = text[:previewText]; len(text) > 0 && !utf8.Valid(text[max(0, len(text)-utf8.UTFMax):]); {
			text = text[:len(text)-1]
		}
	}
	return string(text)
}

// take is what the cutter calls with each row. Budgets of the split train do not end a preview.
func (v *previewer) take(row *example.Example) error {
	d, s := &v.doc, &v.f.state
	switch {
	case s.Verdict == heldout.ToNeither, s.Verdict == heldout.ToVal && v.f.valFull():
		return nil
	case v.b.opts.Pack == pack.BFD && row.Part > 0:
		d.Cut = true // packing takes the first chunk alone
		return nil
	case s.Verdict == heldout.ToVal:
		s.Val++
		v.f.hold.Have++
	}
	d.NumExamples++
	d.Tokens += int64(len(row.InputIDs) + len(row.Labels))
	if v.kept += len(row.InputIDs) + len(row.Labels); len(d.Examples) < previewExamples && v.kept <= previewTokens {
		d.Examples = append(d.Examples, PreviewExample{slices.Clone(row.InputIDs), slices.Clone(row.Labels),
			slices.Clone(row.LossMask)})
	}
	return nil
}

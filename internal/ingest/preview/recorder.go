package preview

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/setup"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/uris"
)

const (
	// MaxDocuments is the maximum number of documents of an input that a preview shows.
	MaxDocuments = 1000
	// SampleBytes is how much of the text of an input the estimate is made of, or more where more is shown.
	SampleBytes = 128 << 10
	// MaxInputs is the maximum number of inputs that are looked at.
	MaxInputs = 8

	maxListed   = 10_000    // inputs among which these are chosen
	pieceBytes  = 256 << 10 // text of a document after which its rest is not read
	maxExamples = 4         // shown of a document
	maxTokens   = 1 << 20   // in all examples that are shown
	textBytes   = 240       // shown of a document that is left out
)

// Choose chooses the inputs that are looked at, in order: of many the first of each format, the largest,
// and then the first.
func Choose(set *source.Set) (shown []int, err error) {
	var sizes []int64
	formats, largest := map[source.Format]bool{}, 0
	for i := range min(set.Len(), maxListed) {
		in, err := set.Input(i)
		if err != nil {
			return nil, err
		}
		if sizes = append(sizes, in.Size); in.Size > sizes[largest] {
			largest = i
		}
		if !formats[in.Format] && len(shown) < MaxInputs-1 {
			shown, formats[in.Format] = append(shown, i), true
		}
	}
	if !slices.Contains(shown, largest) {
		shown = append(shown, largest)
	}
	for i := 0; i < len(sizes) && len(shown) < MaxInputs; i++ {
		if !slices.Contains(shown, i) {
			shown = append(shown, i)
		}
	}
	slices.Sort(shown)
	return shown, nil
}

// A Recorder makes a preview of the documents that it is told of, one after another.
type Recorder struct {
	Preview *Preview

	from   *setup.Prepared
	n      int      // documents of an input that are shown
	doc    Document // the document that is read
	read   int64    // bytes of the input's records
	sample sample   // what was seen of the input
	looked int      // inputs
	tokens int      // in all examples
	estimator
}

// NewRecorder returns a recorder that shows so many documents of each input.
func NewRecorder(from *setup.Prepared, documents int) *Recorder {
	return &Recorder{from: from, n: documents,
		Preview: &Preview{Tokenizer: from.Tokenizer, Memory: from.Memory, Options: *from.Options}}
}

// input returns the input that is read.
func (r *Recorder) input() *Input { return &r.Preview.Inputs[len(r.Preview.Inputs)-1] }

// BeginInput begins an input of a phase.
func (r *Recorder) BeginInput(in source.Input, phase int) {
	r.Preview.Inputs = append(r.Preview.Inputs, Input{URI: uris.Shown(in.URI), Val: phase == setup.Val,
		Format: in.Format, Compression: in.Compression, Bytes: in.Size})
	r.sample, r.read = sample{}, 0
}

// WantsMore reports whether another document of the input is wanted.
func (r *Recorder) WantsMore() bool { return r.read < SampleBytes || len(r.input().Documents) < r.n }

// EndInput ends input i of a set, which was read up to a position, or to its end.
func (r *Recorder) EndInput(set *source.Set, i int, at source.Position, ended bool) error {
	r.looked++
	r.input().Ended = ended
	return r.estimator.input(set, i, &r.sample, at, ended)
}

// Failed notes why the input ends the build.
func (r *Recorder) Failed(err error) { r.input().Error = fault.Textf("%v", err) }

// Empty reports whether there are no more inputs and none of them holds a document.
func (r *Recorder) Empty() bool {
	return r.Preview.MoreInputs == 0 && !slices.ContainsFunc(r.Preview.Inputs, func(in Input) bool {
		return len(in.Documents) > 0
	})
}

// Begin begins a document, or its next piece.
func (r *Recorder) Begin(j *job.Job, d *job.Document) {
	r.read += int64(len(j.Raw))
	if d.First {
		r.doc = Document{Record: d.Row, Member: d.Member}
	}
	if d.Skipped {
		r.doc.Unread = d.Rows
	}
}

// Tokenized adds what a worker made of the piece in so many seconds.
func (r *Recorder) Tokenized(d *job.Document, seconds float64) {
	r.sample.seconds += seconds
	if d.Conversation != nil {
		r.doc.Shape = string(d.Conversation.Shape)
	}
	r.doc.Bytes += d.TextBytes
	r.doc.Replaced += d.Replaced
}

// Example adds an example of the document.
func (r *Recorder) Example(ex *example.Example) {
	d, n := &r.doc, len(ex.InputIDs)+len(ex.Labels)
	d.NumExamples++
	d.Tokens += int64(n)
	if r.tokens += n; len(d.Examples) < maxExamples && r.tokens <= maxTokens {
		d.Examples = append(d.Examples, Example{slices.Clone(ex.InputIDs), slices.Clone(ex.Labels),
			slices.Clone(ex.LossMask)})
	}
}

// Cut notes that the rest of the document is left out.
func (r *Recorder) Cut() { r.doc.Cut = true }

// Bad notes why the document is a bad record.
func (r *Recorder) Bad(cause error) {
	if located, ok := errors.AsType[*source.RecordError](cause); ok {
		cause = located.Cause
	}
	r.doc.LeftOut = fault.Textf("it is a bad record: %v", cause)
}

// Judged notes the split of the document, or why there is no example of it: one of the counts is larger than before.
// shown is the beginning of its text.
func (r *Recorder) Judged(split string, before, after *counts.Counts, valFull bool, shown []byte) {
	if r.doc.NumExamples > 0 {
		r.doc.Split = split
		return
	}
	r.doc.LeftOut = whyLeftOut(report.LeftOut(*before), report.LeftOut(*after), valFull)
	if len(shown) > textBytes {
		for shown = shown[:textBytes]; len(shown) > 0 && !utf8.Valid(shown[max(0, len(shown)-utf8.UTFMax):]); {
			shown = shown[:len(shown)-1]
		}
	}
	r.doc.Text = string(shown)
}

// whyLeftOut says which of the counts of reasons went up.
func whyLeftOut(before, after map[string]int64, valFull bool) fault.Text {
	for reason, n := range after {
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
	if valFull {
		return fault.Textf("the split val has {max-val-examples}")
	}
	return fault.Textf("no token of it within {max-length} is trained on")
}

// TooLong reports whether the rest of the document is not read.
func (r *Recorder) TooLong() bool { return r.doc.Bytes >= pieceBytes }

// End ends the document. It is partial where its rest is not read.
func (r *Recorder) End(partial bool) {
	r.doc.Partial = partial
	r.sample.add(&r.doc)
	if in := r.input(); len(in.Documents) < r.n {
		in.Documents = append(in.Documents, r.doc)
	}
}

// Finish sets the estimate and adds notes, leaving out those without text.
func (r *Recorder) Finish(notes ...fault.Text) *Preview {
	p := r.Preview
	p.Notes = slices.DeleteFunc(append(p.Notes, notes...), fault.Text.IsZero)
	p.Estimate = r.estimate()
	return p
}

package preview

import (
	"github.com/dsload/dsload/internal/ingest/source"
)

// An Estimate is what a build would make, from the sizes of its sources and a sample of their documents.
type Estimate struct {
	// Exact is set where the sample is all there is. Known is not set where the sources have no known end:
	// then the other figures are those of the sample.
	Exact bool `json:"exact"`
	Known bool `json:"known"`

	Documents int64   `json:"documents"`
	Kept      int64   `json:"kept"` // documents that examples are made of
	TextBytes int64   `json:"text_bytes"`
	Tokens    int64   `json:"tokens"`
	Examples  int64   `json:"examples"` // before packing
	Bytes     int64   `json:"dataset_bytes"`
	Seconds   float64 `json:"seconds"`
	// LimitedBy is the option that ends the build before the sources do, or "".
	LimitedBy string `json:"limited_by,omitempty"`
}

// A sample is what a preview saw of an input, or what it estimates of all inputs that it looked at.
type sample struct {
	documents, kept  float64
	text             float64 // bytes, of the documents that stay
	tokens, examples float64
	seconds          float64 // in a worker
}

func (s *sample) add(d *Document) {
	s.examples += float64(d.NumExamples)
	s.tokens += float64(d.Tokens)
	if !d.Partial {
		s.documents += float64(max(1, d.Unread))
	}
	if d.NumExamples > 0 && !d.Partial {
		s.kept++
	}
	if d.NumExamples > 0 {
		s.text += float64(d.Bytes)
	}
}

// addTimes adds another sample several times.
func (s *sample) addTimes(n float64, other *sample) {
	s.documents += n * other.documents
	s.kept += n * other.kept
	s.text += n * other.text
	s.tokens += n * other.tokens
	s.examples += n * other.examples
	s.seconds += n * other.seconds
}

// An estimator adds up samples of inputs.
type estimator struct {
	all     sample
	text    int64 // bytes of the inputs that were looked at, estimated
	sampled bool  // an input was not read to its end
	endless bool
}

// input adds an input of which a sample was read, up to a position.
func (e *estimator) input(set *source.Set, i int, s *sample, at source.Position, ended bool) error {
	text, rows, err := set.Holds(i)
	if err != nil {
		return err
	}
	times, skipped := 1.0, 0.0
	switch {
	case ended && rows >= 0:
		skipped, text = float64(rows)-s.documents, max(text, 0)
	case ended:
		text = max(text, 0)
	case rows >= 0 && s.documents > 0: // the rest is as what statistics did not skip
		skipped = float64(at.Row) - s.documents
		times = (float64(rows) - skipped) / s.documents
	case text > 0 && at.Offset > 0:
		times = max(1, float64(text)/float64(at.Offset))
	}
	e.sampled, e.endless, e.text = e.sampled || !ended, e.endless || text < 0, e.text+max(text, 0)
	if s.documents == 0 && !ended { // it is part of one
		s.documents, s.kept = 1/times, 1/times
	}
	e.all.addTimes(times, s)
	e.all.documents += max(0, skipped)
	return nil
}

const (
	startTime = 0.1 // seconds
	rowBytes  = 20  // a row besides its tokens: offsets, document, part
)

// estimate scales the content of the inputs that were looked at to all inputs, or to the first budget that ends the
// build. Reading a sample with cold caches costs about as much as what a build does besides tokenizing.
func (r *Recorder) estimate() (e Estimate) {
	s, o := &r.estimator.all, r.from.Options
	var total int64
	inputs := 0
	for i := range r.from.Phases {
		n, _ := r.from.Phases[i].Set.EstimateBytes()
		total, inputs = total+n, inputs+r.from.Phases[i].Set.Len()
	}
	scale := 1.0
	if inputs > r.looked && r.estimator.text > 0 {
		scale = float64(total) / float64(r.estimator.text)
	}
	e.Known, e.Exact = !r.estimator.endless, !r.estimator.sampled && inputs == r.looked
	limited := func(budget int64, held float64, option string) {
		if budget > 0 && held > 0 && (!e.Known || float64(budget) < scale*held) {
			scale, e.Known, e.Exact, e.LimitedBy = float64(budget)/held, true, false, option
		}
	}
	limited(o.MaxExamples, s.examples, "max-examples")
	limited(o.MaxTokens, s.tokens, "max-tokens")
	limited(o.MaxBytes, s.text, "max-bytes")
	times := func(n float64) int64 { return int64(scale*n + 0.5) }
	e.Documents, e.Kept, e.TextBytes = times(s.documents), times(s.kept), times(s.text)
	e.Tokens, e.Examples = times(s.tokens), times(s.examples)
	width := int64(4)
	if r.from.Tokenizer.VocabSize() <= 1<<16 {
		width = 2
	}
	e.Bytes = e.Tokens*width + e.Examples*rowBytes
	if r.from.Shards.Schema.LossMask {
		e.Bytes += e.Tokens / 8
	}
	e.Seconds = startTime + scale*s.seconds/float64(o.Workers)
	return e
}

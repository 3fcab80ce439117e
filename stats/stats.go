package stats

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// Options configures Run. The zero value is the default.
type Options struct {
	// OpenTokenizer loads the tokenizer that made the dataset. If it is nil or returns an error,
	// figures that need the tokenizer are omitted. It is called after the rows have been read and
	// the tables of that pass are free.
	OpenTokenizer func() (*tokenize.Tokenizer, error)
	// Samples is how many rows of each split are decoded: 0 means 4, negative none.
	Samples int
}

// Run reads a dataset and describes it. Errors are those of reading it, and ctx's.
func Run(ctx context.Context, d *shard.Dataset, o Options) (*Report, error) {
	m := d.Manifest()
	r := &Report{Dataset: d.Dir(), Tokenizer: m.Tokenizer, Settings: m.Settings, Counters: m.Counters,
		Notes: []string{}}
	counts := make([][]int64, len(m.Splits))
	for i := range m.Splits {
		split, err := d.Split(m.Splits[i].Name)
		if err != nil {
			return nil, err
		}
		s, ids, err := describe(ctx, split)
		if err != nil {
			return nil, err
		}
		s.Sources = m.Splits[i].Sources
		s.LossTokens, s.LossShare = m.Loss(&m.Splits[i])
		r.Splits = append(r.Splits, *s)
		counts[i] = ids
	}
	var tok *tokenize.Tokenizer
	if o.OpenTokenizer != nil {
		var err error
		if tok, err = o.OpenTokenizer(); err != nil {
			r.note("Figures about text are left out: %v.", err)
		}
	}
	for i := range r.Splits {
		split, err := d.Split(r.Splits[i].Name)
		if err != nil {
			return nil, err
		}
		if err := decodeFigures(ctx, &r.Splits[i], split, counts[i], tok, o); err != nil {
			return nil, err
		}
	}
	r.useTextBytes(m)
	r.describeSources(m)
	r.addNotes(m)
	return r, nil
}

// describe makes the pass over a split's rows. ids are the counts by id.
func describe(ctx context.Context, split *shard.Split) (_ *Split, ids []int64, err error) {
	sc, err := newScan(split)
	if err != nil {
		return nil, nil, err
	}
	if err := sc.run(ctx); err != nil {
		return nil, nil, err
	}
	info := split.Info()
	s := &Split{Name: info.Name, Examples: info.Examples, Tokens: info.Tokens, Documents: sc.documents.total,
		Length: sc.lengths.summary(), Lengths: sc.lengths.pairs(), DocLength: sc.documents.summary(),
		DocCounts:   sc.documents.pairs(),
		PaddingRows: int64(len(sc.order)), Sampled: sc.sampled, Packing: packing(sc.pieces)}
	s.Duplicates, s.ApproximateDuplicates = sc.duplicates.duplicates()
	sc.duplicates = nil
	if s.Padding, err = padding(info.Examples, sc.segments, sc.order); err != nil {
		return nil, nil, err
	}
	s.Best = advise(s.Padding, advisedBatch)
	return s, sc.ids, nil
}

// decodeFigures fills in the figures that need the tokenizer.
func decodeFigures(ctx context.Context, s *Split, split *shard.Split, counts []int64, tok *tokenize.Tokenizer,
	o Options) (err error) {
	s.TopTokens = topTokens(counts, s.Tokens, tok)
	n := int64(o.Samples)
	if n == 0 {
		n = 4
	}
	if s.Samples, err = samples(split, tok, max(0, n)); err != nil || tok == nil {
		return err
	}
	f := figuresOf(counts, tok)
	s.Unknown, s.ByteFallback = f.unknown, &f.fallback
	s.BytesPerToken = new(f.textBytes / float64(s.Tokens))
	replaced, approximate, err := countReplaced(ctx, split, tok, f, decodeTokens)
	s.Replaced, s.ApproximateReplaced = &replaced, approximate
	return err
}

// useTextBytes takes the bytes of text from the build's own count if that covers exactly the rows.
// Otherwise decoded text is used, which lacks what a tokenizer does not keep.
func (r *Report) useTextBytes(m *shard.Manifest) {
	c := counts.Of(m.Counters, m.Dropped)
	if len(r.Splits) != 1 || m.Schema.Labels || c.TextBytes == 0 || c.LacksText() {
		return
	}
	var settings struct {
		Overflow string `json:"overflow"`
	}
	if json.Unmarshal(m.Settings, &settings) != nil || settings.Overflow != "chunk" {
		return // text may have been truncated
	}
	r.Splits[0].BytesPerToken = new(float64(c.TextBytes) / float64(r.Splits[0].Tokens))
}

// describeSources lists the sources. Without a record of what each gave, only a single source has figures.
func (r *Report) describeSources(m *shard.Manifest) {
	r.Sources = []Source{}
	given := map[string]shard.SourceCounts{}
	for _, s := range m.Splits {
		for _, c := range s.Sources {
			all := given[c.URI]
			all.Add(c)
			given[c.URI] = all
		}
	}
	var tokens int64
	var text float64
	known := len(m.Sources) == 1
	for _, s := range r.Splits {
		known = known && s.BytesPerToken != nil
		tokens += s.Tokens
		if s.BytesPerToken != nil {
			text += *s.BytesPerToken * float64(s.Tokens)
		}
	}
	for _, src := range m.Sources {
		one := Source{URI: src.URI, Bytes: src.Bytes}
		if c := given[src.URI]; known {
			one.BytesPerToken = new(text / float64(tokens))
		} else if c.TextTokens > 0 {
			one.BytesPerToken = new(c.BytesPerToken())
		}
		r.Sources = append(r.Sources, one)
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// addNotes adds notes on the limits of the figures.
func (r *Report) addNotes(m *shard.Manifest) {
	for _, s := range r.Splits {
		switch {
		case s.Sampled:
			r.note("Padding of %s is taken from %d rows in %d windows spread evenly over an epoch of %d.", s.Name,
				s.PaddingRows, s.PaddingRows/segmentRows, s.Examples)
		case s.PaddingRows > s.Examples:
			r.note("Padding of %s is the mean of %d epochs.", s.Name, s.PaddingRows/s.Examples)
		}
		if s.ApproximateDuplicates {
			r.note("Duplicates of %s are estimated: there are too many different rows to compare all of them.", s.Name)
		}
		if s.ApproximateReplaced {
			r.note("U+FFFD in %s is estimated from blocks of rows spread evenly.", s.Name)
		}
	}
	if m.Schema.Labels {
		r.note("Padding and packing are those of input_ids; targets are padded by themselves.")
	}
	if m.Schema.Segments {
		r.note("Rows are packed: documents are counted as pieces, one for each row that a document lies in, " +
			"and packing is reckoned from them.")
	} else {
		r.note("Packing takes rows as they are, all at once; packing within windows fills a little less.")
	}
	if m.Schema.VocabSize > maxCountedIDs {
		r.note("Ids from %d on are left out of the figures about tokens.", maxCountedIDs)
	}
	if len(m.Sources) > 1 && slices.ContainsFunc(m.Splits, func(s shard.SplitInfo) bool { return s.Sources == nil }) {
		r.note("What each of %d sources gave is unknown: the dataset was built by a version that did not record it.",
			len(m.Sources))
	}
}

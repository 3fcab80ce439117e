package dataset

import (
	"bytes"
	"sort"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// BySource counts what each source gave to the rows of each split, in the order of documents. Its fields are plain
// data that survive JSON, so a restored BySource counts on. The zero BySource has seen no document.
type BySource struct {
	Phase   int          `json:"phase,omitempty"`
	Input   int          `json:"input,omitempty"` // the last document's
	Sources []SourceRows `json:"sources,omitempty"`
	// Next is the number after that of the last document with a row, of each split.
	Next [shardfile.NumSplits]int64 `json:"next"`
	rows int64                      // numbers the rows of this run
}

// SourceRows is what a source gave.
type SourceRows struct {
	Phase  int                                     `json:"phase,omitempty"`
	First  int64                                   `json:"first"` // its first document
	Splits [shardfile.NumSplits]shard.SourceCounts `json:"splits"`
	row    int64                                   // the last of its rows that was counted
}

// A Piece is what a packed row holds of a document: the whole, or what was cut off it.
type Piece struct {
	Document int64
	Part     int32
}

// Enter takes the number of a document, of an input whose line in the manifest has this name.
func (b *BySource) Enter(phase, input int, document int64, name func(input int) string) {
	n := len(b.Sources)
	if n > 0 && b.Phase == phase && b.Input == input {
		return
	}
	b.Phase, b.Input = phase, input
	uri := name(input)
	if n > 0 && b.Sources[n-1].Phase == phase && b.Sources[n-1].Splits[0].URI == uri {
		return
	}
	s := SourceRows{Phase: phase, First: document}
	for i := range s.Splits {
		s.Splits[i].URI = uri
	}
	b.Sources = append(b.Sources, s)
}

// Text counts text of the last document, which goes to a split.
func (b *BySource) Text(split int, bytes int64, tokens int) {
	if n := len(b.Sources); n > 0 {
		c := &b.Sources[n-1].Splits[split]
		c.TextBytes += bytes
		c.TextTokens += int64(tokens)
	}
}

// Row counts a row of a split.
func (b *BySource) Row(split int, e *Example) {
	b.rows++
	if e.Segments == nil {
		b.add(split, Piece{Document: e.Document}, e.Tokens(), lossOf(e, 0, e.Tokens()))
		return
	}
	at := 0
	for i, n := range e.Segments {
		b.add(split, e.Pieces[i], int(n), lossOf(e, at, at+int(n)))
		at += int(n)
	}
}

// Rows counts rows of documents of the last source.
func (b *BySource) Rows(split int, r *Rows) {
	last := len(b.Sources) - 1
	if last < 0 {
		return
	}
	c := &b.Sources[last].Splits[split]
	c.Rows += int64(len(r.Lengths))
	c.Documents += r.Documents
	c.Tokens += r.Tokens
	c.LossTokens += r.Loss
	b.Next[split] = r.Document + r.Documents
}

func (b *BySource) add(split int, p Piece, tokens, loss int) {
	after := len(b.Sources)
	if after > 0 && p.Document < b.Sources[after-1].First { // packed rows hold earlier documents
		after = sort.Search(after, func(i int) bool {
			s := &b.Sources[i]
			return s.Phase > b.Phase || s.Phase == b.Phase && s.First > p.Document
		})
	}
	if after == 0 { // a checkpoint of a version that did not count
		return
	}
	s := &b.Sources[after-1]
	c := &s.Splits[split]
	if s.row != b.rows {
		s.row = b.rows
		c.Rows++
	}
	if p.Part == 0 && b.Next[split] != p.Document+1 {
		b.Next[split] = p.Document + 1
		c.Documents++
	}
	c.Tokens += int64(tokens)
	c.LossTokens += int64(loss)
}

// lossOf returns how many tokens of part of a row carry loss.
func lossOf(e *Example, from, to int) int {
	switch {
	case e.Labels != nil:
		return len(e.Labels)
	case e.LossMask == nil:
		return to - from
	}
	return LossOf(e.LossMask[from:to])
}

// LossOf returns how many tokens carry loss by their mask.
func LossOf(mask []bool) int { return bytes.Count(MaskBytes(mask), []byte{1}) }

// addTo adds the sources of a split to those of documents before.
func (b *BySource) addTo(have []shard.SourceCounts, split int) []shard.SourceCounts {
	have = append([]shard.SourceCounts(nil), have...)
	for i := range b.Sources {
		if c := b.Sources[i].Splits[split]; c.Rows > 0 || c.TextBytes > 0 {
			have = addSources(have, c)
		}
	}
	return have
}

// addSources adds sources to those of documents before; the first may go on with the last one.
func addSources(have []shard.SourceCounts, more ...shard.SourceCounts) []shard.SourceCounts {
	for _, c := range more {
		last := len(have) - 1
		if last < 0 || have[last].URI != c.URI {
			have = append(have, c)
			continue
		}
		have[last].Add(c)
	}
	return have
}

// setSources sets what a split says of its sources, unless they do not account for all of its tokens: those of
// earlier versions were not counted.
func setSources(info *shard.SplitInfo, sources []shard.SourceCounts) {
	var tokens, loss int64
	for i := range sources {
		tokens += sources[i].Tokens
		loss += sources[i].LossTokens
	}
	if tokens == info.Tokens {
		info.Sources, info.LossTokens = sources, loss
		info.LossShare = float64(loss) / float64(info.Tokens+info.LabelTokens)
	}
}

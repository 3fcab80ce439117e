package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// A budget of the whole build keeps a prefix of the rows of each split. Parts before its end are
// kept whole, and parts after it are dropped. In the part where it ends, whole shards are kept or
// dropped, and at most one shard of each split is copied up to the last kept row.

// cut finds how many rows of each part the budgets keep, and adds up their totals. It returns the
// options whose budget dropped rows.
func (m *Merger) cut() (cutBy []string, err error) {
	if m.o.MaxTrain == 0 && m.o.MaxVal == 0 && m.o.MaxTokens == 0 {
		for i := range m.parts {
			m.parts[i].keep = m.parts[i].rows
		}
		m.splits = m.whole
		return nil, nil
	}
	left := [shardfile.NumSplits]int64{cmp.Or(m.o.MaxTrain, math.MaxInt64), cmp.Or(m.o.MaxVal, math.MaxInt64)}
	tokens := cmp.Or(m.o.MaxTokens, math.MaxInt64)
	for i := range m.parts {
		t := &m.parts[i]
		whole, sum := true, int64(0)
		for n := range t.rows {
			t.keep[n] = min(t.rows[n], left[n])
			whole = whole && t.keep[n] == t.rows[n]
			sum += t.tokens[n]
		}
		note := func(name string, is bool) {
			if is && !slices.Contains(cutBy, name) {
				cutBy = append(cutBy, name)
			}
		}
		note("max-examples", t.keep[0] < t.rows[0] && tokens > 0)
		note("max-val-examples", t.keep[1] < t.rows[1] && tokens > 0)
		switch {
		case tokens == 0:
			note("max-tokens", t.keep[0]+t.keep[1] > 0)
			t.keep = [shardfile.NumSplits]int64{}
		case whole && sum <= tokens:
			tokens -= sum
			p, err := m.part(i)
			if err != nil {
				return nil, err
			}
			for _, s := range p.Splits {
				m.splits[shardfile.SplitIndex(s.Name)].add(&s)
			}
		case t.keep != [shardfile.NumSplits]int64{}:
			full, err := m.cutPart(i, &tokens)
			if err != nil {
				return nil, err
			}
			note("max-tokens", full)
		}
		for n := range left {
			left[n] -= t.keep[n]
		}
	}
	return cutBy, nil
}

// Kept returns how many rows of a part Finish kept, of train and of val.
func (m *Merger) Kept(part int) [shardfile.NumSplits]int64 { return m.parts[part].keep }

// add adds the totals of a part's split.
func (t *mergedSplit) add(s *shard.SplitInfo) {
	addStats(&t.stats, s)
	t.sources = addSources(t.sources, s.Sources...)
	t.shards += int64(len(s.Shards))
}

// cutPart counts the rows of a part in the order of their documents until a budget is reached. It
// subtracts the tokens that it keeps from tokens, and reports whether that budget dropped rows.
func (m *Merger) cutPart(i int, tokens *int64) (full bool, err error) {
	p, err := m.part(i)
	if err != nil {
		return false, err
	}
	d, err := shard.ReaderOptions{}.OpenManifest(m.fs, m.dir, p)
	if err != nil {
		return false, err
	}
	defer d.Close()
	t := &m.parts[i]
	walks, err := walkSplits(d, p, t.keep)
	if err != nil {
		return false, err
	}
	t.keep = [shardfile.NumSplits]int64{}
	short := -1 // tokens to which the last row is shortened
	last := 0
	for !full {
		n := m.next(&walks)
		if n < 0 {
			break
		}
		length, labels := walks[n].row()
		size := int64(length + labels)
		if size > *tokens {
			full = true
			if labels > 0 || *tokens == 0 || !m.keepsLoss(&walks[n], *tokens) {
				break
			}
			length, size, short, last = int(*tokens), *tokens, int(*tokens), n
		}
		t.keep[n]++
		*tokens -= size
		m.splits[n].stats.Add(length, labels)
		if err := walks[n].addSource(n, length, labels); err != nil {
			return false, err
		}
		if err := walks[n].advance(); err != nil {
			return false, err
		}
	}
	if full {
		*tokens = 0
	}
	for n := range walks {
		m.splits[n].sources = walks[n].by.addTo(m.splits[n].sources, n)
		shorten := -1
		if n == last {
			shorten = short
		}
		if err := m.cutSplit(i, n, walks[n].r, shorten); err != nil {
			return false, err
		}
	}
	return full, nil
}

// walkSplits begins to read the rows of a part, of which keep may be kept.
func walkSplits(d *shard.Dataset, p *shard.Manifest, keep [shardfile.NumSplits]int64) (walks [shardfile.NumSplits]rowWalk, err error) {
	for n := range walks {
		walks[n] = rowWalk{left: keep[n]}
		if keep[n] > 0 {
			if walks[n].r, err = d.Split(shardfile.SplitNames[n]); err != nil {
				return walks, err
			}
			walks[n].sources = p.Split(shardfile.SplitNames[n]).Sources
		}
		if err := walks[n].fill(); err != nil {
			return walks, err
		}
	}
	return walks, nil
}

// next returns the split whose next row comes first, -1 if none is left.
func (m *Merger) next(walks *[shardfile.NumSplits]rowWalk) int {
	train, val := &walks[0], &walks[1]
	switch {
	case train.left == 0 && val.left == 0:
		return -1
	case val.left == 0, train.left > 0 && (m.o.ValLast || train.documents[train.pos] < val.documents[val.pos]):
		return 0
	}
	return 1
}

// keepsLoss reports whether a shortened row still has a token that the loss counts.
func (m *Merger) keepsLoss(w *rowWalk, tokens int64) bool {
	if !w.r.Schema().LossMask {
		return true
	}
	var row shard.Row
	return w.r.ReadRow(w.at, &row) == nil && slices.Contains(row.LossMask[:tokens], true)
}

// rowWalk reads lengths and documents of a split's rows, in order.
type rowWalk struct {
	r         *shard.Split
	at, left  int64 // next row; number of rows that may be kept
	pos       int
	documents []int64
	lengths   []int32
	labels    []shard.Span
	rows      []int64

	sources []shard.SourceCounts // the row's and those after it
	ended   int64                // how many rows came before the first of them
	by      BySource
	ids     []uint32
}

// addSource counts the row, of which length tokens are kept, for its source. Of a source with such a row all text counts.
func (w *rowWalk) addSource(split, length, labels int) error {
	for len(w.sources) > 0 && w.at >= w.ended+w.sources[0].Rows {
		w.ended, w.sources = w.ended+w.sources[0].Rows, w.sources[1:]
	}
	if len(w.sources) == 0 {
		return nil
	}
	document, before := w.documents[w.pos], len(w.by.Sources)
	w.by.Enter(0, int(w.ended), document, func(int) string { return w.sources[0].URI })
	if len(w.by.Sources) > before {
		w.by.Text(split, w.sources[0].TextBytes, int(w.sources[0].TextTokens))
	}
	w.ids = slices.Grow(w.ids[:0], max(length, labels))
	row, e := shard.Row{}, Example{InputIDs: w.ids[:length], Document: document}
	switch schema := w.r.Schema(); {
	case schema.Labels:
		e.Labels = w.ids[:labels]
	case schema.LossMask:
		if err := w.r.ReadColumns(w.at, shard.ColumnLossMask, &row); err != nil {
			return err
		}
		e.LossMask = row.LossMask[:length]
	}
	w.by.Row(split, &e)
	return nil
}

func (w *rowWalk) row() (length, labels int) {
	if len(w.labels) > 0 {
		labels = int(w.labels[w.pos].Len)
	}
	return int(w.lengths[w.pos]), labels
}

func (w *rowWalk) advance() error {
	w.at++
	w.left--
	if w.pos++; w.pos < len(w.rows) {
		return nil
	}
	return w.fill()
}

// fill reads the next rows.
func (w *rowWalk) fill() error {
	n := int(min(w.left, shardfile.MaxBatchRows))
	w.pos = 0
	w.rows = w.rows[:0]
	for i := range n {
		w.rows = append(w.rows, w.at+int64(i))
	}
	if n == 0 {
		return nil
	}
	w.documents, w.lengths = make([]int64, n), make([]int32, n)
	if err := w.r.Documents(w.documents, w.at); err != nil {
		return err
	}
	if err := w.r.Lengths(w.lengths, w.rows); err != nil {
		return err
	}
	if !w.r.Schema().Labels {
		return nil
	}
	w.labels = make([]shard.Span, n)
	return w.r.LocateColumn(shard.ColumnLabels, w.labels, w.rows)
}

// cutSplit makes a shard that ends with the part's last kept row, if that is inside a shard or is
// shortened.
func (m *Merger) cutSplit(i, n int, r *shard.Split, shorten int) error {
	keep := m.parts[i].keep[n]
	if keep == 0 {
		return nil
	}
	first := int64(0)
	for j := range r.Info().Shards {
		sh := &r.Info().Shards[j]
		m.splits[n].shards++
		if first+sh.Rows < keep || first+sh.Rows == keep && shorten < 0 {
			if first += sh.Rows; first == keep {
				return nil
			}
			continue
		}
		c, err := m.copyRows(i, n, r, j, first, keep, shorten)
		if err != nil {
			return fmt.Errorf("merge %s: cut %s: %w", m.dir, sh.Name, err)
		}
		m.parts[i].cut[n] = c
		return nil
	}
	return nil
}

// copyRows writes rows first to end of a shard into a new one.
func (m *Merger) copyRows(i, n int, r *shard.Split, index int, first, end int64, shorten int) (*shard.ShardInfo, error) {
	o := BuilderOptions{Schema: r.Schema(), ShardBytes: shardfile.MaxShardBytes}.withDefaults()
	l := shardfile.NewLayout(shardfile.Shape(o.Schema))
	s := &buildSplit{name: shardfile.SplitNames[n]}
	s.prepare(l)
	name := shardfile.PartName{Split: n, Part: i, Index: index, Cut: true}.String()
	open := newShard(m.fs, filepath.Join(m.dir, name), s.stage, s.hash)
	if err := open.create(l); err != nil {
		return nil, err
	}
	defer open.close() // where an error comes before it has its name
	var e Example
	var scratch batchScratch
	left := end - first
	for row, err := range r.Rows(first, end) {
		if err = errors.Join(err, m.ctx.Err()); err != nil {
			return nil, err
		}
		fillExample(&e, row, o.Schema)
		if left--; left == 0 && shorten >= 0 {
			e.InputIDs = e.InputIDs[:shorten]
			if e.LossMask != nil {
				e.LossMask = e.LossMask[:shorten]
			}
		}
		if s.pending.rows == shardfile.MaxBatchRows ||
			s.pending.rows > 0 && s.pending.bytes+rowBytes(l.Schema, &e) > o.batchBytes() {
			if err := open.writeBatch(l, s.pending, &scratch, false); err != nil {
				return nil, err
			}
			s.pending.reset(l)
		}
		if err := s.pending.add(l, &e); err != nil {
			return nil, err
		}
	}
	if err := open.writeBatch(l, s.pending, &scratch, false); err != nil {
		return nil, err
	}
	c, err := open.end(l)
	if err == nil {
		err = open.syncFile()
	}
	if err == nil {
		err = open.rename()
	}
	info := c.info(name)
	return &info, err
}

// fillExample turns a row that was read into an Example.
func fillExample(e *Example, row *shard.Row, s shard.Schema) {
	e.InputIDs = row.AppendInputIDs(e.InputIDs[:0])
	e.Document, e.Part = row.Document, row.Part
	if s.Labels {
		e.Labels = row.AppendLabels(e.Labels[:0])
	}
	if s.LossMask {
		e.LossMask = row.LossMask
	}
	if s.Segments {
		e.Segments = row.Segments
	}
}

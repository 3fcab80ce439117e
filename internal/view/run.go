package view

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/origins"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/tokenizers"
)

// A Run is the rows of the datasets that a training run reads.
type Run struct {
	*serve.Trace
	fsys   shardfile.ReadFS
	warn   func(string)
	splits []*Split // one for each dataset, nil until needed
}

// NewRun returns the run of a trace. It warns of what datasets lack.
func NewRun(fsys shardfile.ReadFS, trace *serve.Trace, warn func(string)) *Run {
	return &Run{trace, fsys, warn, make([]*Split, trace.Members())}
}

// Of returns the split of the i-th dataset, and opens what is needed to show its rows if need be.
func (r *Run) Of(i int) (*Split, error) {
	if r.splits[i] != nil {
		return r.splits[i], nil
	}
	_, dir, d := r.Dataset(i)
	s := &Split{Rows: r.Split(i)}
	var err error
	if s.tok, err = tokenizers.OfDataset(r.fsys, dir, d.Manifest()); err != nil {
		r.warn("rows are shown as ids: " + err.Error())
	}
	s.origins, err = origins.OpenSplit(r.fsys, dir, d.Manifest(), s.Rows.Info().Name)
	if errors.Is(err, origins.ErrNone) {
		r.warn(fmt.Sprintf("%s: its build did not record where documents came from; "+
			"sources and records are left out; build it again to have them", dir))
		err = nil
	}
	r.splits[i] = s
	return s, err
}

// Close closes what was opened.
func (r *Run) Close() (err error) {
	for _, s := range r.splits {
		if s != nil {
			err = errors.Join(err, s.origins.Close())
		}
	}
	return err
}

// List returns rows of the run.
func (r *Run) List(rows []serve.TracedRow) *List {
	return &List{Len: int64(len(rows)), read: func(i int64) (*Row, error) {
		t := &rows[i]
		row, err := r.read(t)
		if err != nil {
			return nil, err
		}
		epoch := t.Position / r.Rows()
		row.Row, row.Epoch, row.Dataset = &t.Position, &epoch, r.nameOf(t.Member)
		if t.Step >= 0 {
			row.Step, row.Rank = &t.Step, &t.Rank
		}
		return row, nil
	}}
}

// nameOf returns the name of a member if there are several.
func (r *Run) nameOf(member int) (name string) {
	if r.Members() > 1 {
		name, _, _ = r.Dataset(member)
	}
	return name
}

// A Piece is a document, or a part of one, in a row that is packed while it is served.
type Piece struct {
	Origin
	Dataset string `json:"dataset,omitempty"`
	From    int64  `json:"from"`   // the piece's first token in the example
	Tokens  int64  `json:"tokens"` // the number of tokens in the piece
	Text    string `json:"text"`
}

// read reads a row. One that is packed while it is served is put together of its pieces.
func (r *Run) read(t *serve.TracedRow) (*Row, error) {
	pieces, err := r.Trace.Pieces(*t)
	if err != nil {
		return nil, err
	}
	if pieces == nil {
		s, err := r.Of(t.Member)
		if err != nil {
			return nil, err
		}
		return s.Read(t.Example)
	}
	var packed *Row
	for _, p := range pieces {
		s, err := r.Of(p.Member)
		if err != nil {
			return nil, err
		}
		row, err := s.Read(p.Example)
		if err == nil {
			err = s.locate(&row.Origin)
		}
		if err != nil {
			return nil, err
		}
		if packed == nil {
			packed = &Row{Split: row.Split, Origin: row.Origin, of: s}
		}
		end := p.From + p.Tokens
		ids := row.InputIDs[p.From:end]
		packed.Pieces = append(packed.Pieces, Piece{row.Origin, r.nameOf(p.Member), p.From, p.Tokens, s.text(ids)})
		packed.InputIDs = append(packed.InputIDs, ids...)
		packed.Segments = append(packed.Segments, int32(p.Tokens))
		packed.Documents += max(1, row.Documents)
		if row.LossMask == nil {
			row.LossMask = slices.Repeat([]bool{true}, len(row.InputIDs))
		}
		packed.LossMask = append(packed.LossMask, row.LossMask[p.From:end]...)
	}
	packed.decode()
	return packed, nil
}

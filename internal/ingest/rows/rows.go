package rows

import (
	"slices"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/pack"
)

// choose sets p.carried for the pieces of the rows that stay in the window: those opened last among
// the rows that are not nearly full.
func (p *Packing) choose(rows *pack.Rows, most int64) {
	p.carried = slices.Grow(p.carried[:0], len(p.lengths))[:len(p.lengths)]
	clear(p.carried)
	pieces := len(p.lengths) / 2
	for i := rows.Len() - 1; i >= 0; i-- {
		var n int64
		for _, piece := range rows.Row(i) {
			n += int64(piece.Len)
		}
		if nearlyFull*n > (nearlyFull-1)*int64(p.Length) || n > most || len(rows.Row(i)) > pieces {
			continue
		}
		most, pieces = most-n, pieces-len(rows.Row(i))
		for _, piece := range rows.Row(i) {
			p.carried[piece.Item] = true
		}
	}
}

// carry moves the pieces that stay to the beginning of the window, and forgets the others.
func (p *Packing) carry(w *window) {
	old := *w
	w.empty()
	for i, piece := range old.pieces {
		if !p.carried[i] {
			continue
		}
		from, to := piece.at, piece.at+int64(piece.length)
		piece.at = w.tokens
		w.pieces = append(w.pieces, piece) // none moves to a later place
		w.ids = append(w.ids, old.ids[from*int64(p.IDWidth):to*int64(p.IDWidth)]...)
		if p.Masked {
			w.mask = append(w.mask, old.mask[from:to]...)
		}
		w.tokens += int64(piece.length)
	}
}

func (w *window) empty() {
	*w = window{pieces: w.pieces[:0], ids: w.ids[:0], mask: w.mask[:0]}
}

// startRow begins a row that is named after its first document.
func (p *Packing) startRow(first windowPiece) {
	r := &p.row
	*r = dataset.Example{InputIDs: r.InputIDs[:0], LossMask: r.LossMask[:0], Segments: r.Segments[:0],
		Document: first.document, Part: first.part}
}

func (p *Packing) addToRow(w *window, piece windowPiece) {
	r := &p.row
	ids := w.ids[piece.at*int64(p.IDWidth):][:int(piece.length)*p.IDWidth]
	for ; len(ids) > 0; ids = ids[p.IDWidth:] {
		id := uint32(ids[0]) | uint32(ids[1])<<8
		if p.IDWidth == 4 {
			id |= uint32(ids[2])<<16 | uint32(ids[3])<<24
		}
		r.InputIDs = append(r.InputIDs, id)
	}
	if p.Masked {
		for _, trained := range w.mask[piece.at:][:piece.length] {
			r.LossMask = append(r.LossMask, trained != 0)
		}
	}
	r.Segments = append(r.Segments, piece.length)
}

// write writes the row that was put together, unless nothing in it would be trained on.
func (p *Packing) write(split int) error {
	if p.Masked && !slices.Contains(p.row.LossMask, true) {
		p.Counts.WithoutTarget++
		return nil
	}
	return p.Write(split, &p.row)
}

// BeginDocument finishes the counts of the document before.
func (p *Packing) BeginDocument() {
	if *p.Rest > 0 {
		p.Counts.Truncated++ // it lost text, or the token at its end
		*p.Counts.DroppedTokens += max(0, *p.Rest-int64(p.Suffix))
		*p.Rest = 0
	}
}

// Held returns how many tokens of a split wait in its window.
func (p *Packing) Held(split int) int64 { return p.windows[split].tokens }

// HeldTokens returns how many tokens wait in all windows.
func (p *Packing) HeldTokens() (n int64) {
	for i := range p.windows {
		n += p.windows[i].tokens
	}
	return n
}

// PackAll packs what all windows hold, the smaller split first: a budget of tokens must not starve it.
func (p *Packing) PackAll() error {
	for _, split := range []int{Val, Train} {
		if err := p.pack(split, 0); err != nil {
			return err
		}
	}
	return nil
}

// Cut shortens a row to its first n tokens.
func Cut(row *dataset.Example, n int64) {
	row.InputIDs = row.InputIDs[:n]
	if row.LossMask != nil {
		row.LossMask = row.LossMask[:n]
	}
	for i, length := range row.Segments {
		if n <= int64(length) {
			row.Segments[i] = int32(n)
			row.Segments = row.Segments[:i+1]
			return
		}
		n -= int64(length)
	}
}

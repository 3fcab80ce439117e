package ingest

import (
	"slices"

	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// choose sets p.carried for the pieces of the rows that stay in the window: those opened last among
// the rows that are not nearly full.
func (p *packing) choose(rows *pack.Rows, most int64) {
	p.carried = slices.Grow(p.carried[:0], len(p.lengths))[:len(p.lengths)]
	clear(p.carried)
	pieces := len(p.lengths) / 2
	for i := rows.Len() - 1; i >= 0; i-- {
		var n int64
		for _, piece := range rows.Row(i) {
			n += int64(piece.Len)
		}
		if nearlyFull*n > (nearlyFull-1)*int64(p.length) || n > most || len(rows.Row(i)) > pieces {
			continue
		}
		most, pieces = most-n, pieces-len(rows.Row(i))
		for _, piece := range rows.Row(i) {
			p.carried[piece.Item] = true
		}
	}
}

// carry moves the pieces that stay to the beginning of the window, and forgets the others.
func (p *packing) carry(w *window) {
	old := *w
	w.empty()
	for i, piece := range old.pieces {
		if !p.carried[i] {
			continue
		}
		from, to := piece.at, piece.at+int64(piece.length)
		piece.at = w.tokens
		w.pieces = append(w.pieces, piece) // none moves to a later place
		w.ids = append(w.ids, old.ids[from*int64(p.width):to*int64(p.width)]...)
		if p.masked {
			w.mask = append(w.mask, old.mask[from:to]...)
		}
		w.tokens += int64(piece.length)
	}
}

func (w *window) empty() {
	*w = window{pieces: w.pieces[:0], ids: w.ids[:0], mask: w.mask[:0]}
}

// startRow begins a row that is named after its first document.
func (p *packing) startRow(first windowPiece) {
	r := &p.row
	*r = shard.Example{InputIDs: r.InputIDs[:0], LossMask: r.LossMask[:0], Segments: r.Segments[:0],
		Document: first.document, Part: first.part}
}

func (p *packing) addToRow(w *window, piece windowPiece) {
	r := &p.row
	ids := w.ids[piece.at*int64(p.width):][:int(piece.length)*p.width]
	for ; len(ids) > 0; ids = ids[p.width:] {
		id := uint32(ids[0]) | uint32(ids[1])<<8
		if p.width == 4 {
			id |= uint32(ids[2])<<16 | uint32(ids[3])<<24
		}
		r.InputIDs = append(r.InputIDs, id)
	}
	if p.masked {
		for _, trained := range w.mask[piece.at:][:piece.length] {
			r.LossMask = append(r.LossMask, trained != 0)
		}
	}
	r.Segments = append(r.Segments, piece.length)
}

// writePacked writes the row that was put together, unless nothing in it would be trained on.
func (f *flusher) writePacked(split string) error {
	p := f.pack
	f.row = p.row
	switch {
	case !p.masked:
		f.row.LossMask = nil
	case !slices.Contains(f.row.LossMask, true):
		p.state.WithoutTarget++
		return nil
	}
	return f.write(split, &f.row)
}

// beginDocument finishes the counts of the document before.
func (p *packing) beginDocument() {
	s := p.state
	if s.PackRest > 0 {
		s.Truncated++ // it lost text, or the token at its end
		*s.DroppedTokens += max(0, s.PackRest-int64(p.suffix))
		s.PackRest = 0
	}
}

// heldTokens returns how many tokens wait in the windows.
func (p *packing) heldTokens() (n int64) {
	for i := range p.windows {
		n += p.windows[i].tokens
	}
	return n
}

// packWindows packs what all windows hold, the smaller split first: a budget of tokens must not
// starve it.
func (f *flusher) packWindows() error {
	for _, number := range []int{valWindow, trainWindow} {
		if err := f.packWindow(number, 0); err != nil {
			return err
		}
	}
	return nil
}

// packRest packs what is left at the end of a phase.
func (f *flusher) packRest() error {
	if f.pack == nil {
		return nil
	}
	stopped := f.stopped
	f.pack.beginDocument()
	if err := f.packWindows(); err != nil {
		return err
	}
	f.sourcesEnded = stopped == ""
	if stopped != "" {
		f.stopped = stopped // what ended the phase
	}
	return nil
}

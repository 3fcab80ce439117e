// Package rows fills rows with documents: the packing of a build.
package rows

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// The windows within which documents are packed. They depend on the row's length alone, so that the
// bytes of a dataset do not depend on memory.
const (
	// minWindowTokens is the window of short rows.
	minWindowTokens = 1 << 20
	// windowRows is how many rows a window of longer ones fills: best fit decreasing leaves about
	// one of them unfilled.
	windowRows = 256
	// Documents of a window: windowPieces for each token of a row, within limits.
	windowPieces    = 4
	minWindowPieces = 1 << 15
	maxWindowPieces = 1 << 18
	// Rows of a full window that are less than (nearlyFull-1)/nearlyFull full are packed again with
	// the next one, up to 1/carriedShare of the window and half of its pieces.
	nearlyFull   = 32
	carriedShare = 4
)

// WindowTokens returns how many tokens are packed together: those asked for, or as many as suit rows of a length.
func WindowTokens(asked int64, length int) int64 {
	return cmp.Or(asked, max(minWindowTokens, windowRows*int64(length)))
}

func maxPieces(length int) int {
	return min(max(windowPieces*length, minWindowPieces), maxWindowPieces)
}

// The splits, as Packing numbers them.
const (
	Train = iota
	Val
	splits
)

// Config says how documents share rows.
type Config struct {
	Policy pack.Policy
	Length int          // tokens of a row
	Window int64        // tokens that are packed together
	Schema shard.Schema // of the rows; examples have a loss mask where these have
	Suffix int          // special tokens at the end of a document

	Counts *counts.Counts // the build's: what packing left out
	// Rest is how many tokens of the current document came after the first row, under pack.BFD.
	Rest *int64
	// Wanted returns how many tokens of a split are worth holding: those of the rows that its budget leaves.
	Wanted func(split int) int64
	// Changed is called where the windows hold fewer tokens than before.
	Changed func()
	// Write takes a row, which is valid until it returns; if it is lent, its Parts are until they are returned.
	Write func(split int, row *dataset.Example) error
}

// Packing fills rows with documents, between the cutter and the shards. Each split has an open
// window of documents; when it is full, or when what it holds reaches a budget, it is packed and
// its rows are written. Under pack.Wrapped the window is the row that is being filled.
type Packing struct {
	Config
	windows [splits]window

	packer  *pack.Packer // nil for pack.Wrapped
	lengths []int32      // scratch, of a window's pieces
	carried []bool       // scratch: which of them stay in the window
	row     dataset.Example
	lent    dataset.Loan    // of a window, to the writer of its rows
	example example.Example // scratch
}

// window holds the pieces of documents that wait to be packed.
type window struct {
	pieces []windowPiece
	ids    []byte // all pieces' ids, back to back, as they are in a row
	mask   []bool // whether a token of the pieces is trained on
	tokens int64
}

type windowPiece struct {
	document     int64
	at           int64 // its first token's place in the window
	part, length int32
}

const windowPieceBytes = 24

// New returns a packing that holds nothing yet.
func New(c Config) *Packing {
	p := &Packing{Config: c}
	if c.Policy != pack.Wrapped {
		p.packer = pack.New(c.Policy, c.Length)
	}
	return p
}

// MemoryBytes bounds the memory of packing the given number of splits.
func (c *Config) MemoryBytes(splits int64) int64 {
	perToken := int64(c.Schema.IDWidth())
	if c.Schema.LossMask {
		perToken++
	}
	const rowBytes = 1 + 4 + 24 // a token's mask, and the segment and the part that it may be
	length, pieces := int64(c.Length), int64(maxPieces(c.Length))
	if c.Policy == pack.Wrapped {
		return splits*length*(perToken+windowPieceBytes) + length*(rowBytes+savedPieceBytes)
	}
	window := c.Window*perToken + pieces*windowPieceBytes
	return splits*window + pack.Bytes(c.Length, pieces) + length*rowBytes + pieces*(4+1+savedPieceBytes)
}

// Why describes what this memory is for.
func (c *Config) Why() string {
	if c.Policy == pack.Wrapped {
		return "the row that is being filled"
	}
	return fmt.Sprintf("windows of %d documents or %d tokens, packed by %s", maxPieces(c.Length), c.Window, c.Policy)
}

// Add takes an example of a split from the cutter.
func (p *Packing) Add(split int, ex *example.Example) error {
	w := &p.windows[split]
	switch {
	case p.Policy == pack.BFD && ex.Part > 0:
		*p.Rest += int64(ex.Tokens())
		return nil
	case p.Policy == pack.Wrapped:
		return p.wrap(split, ex)
	}
	if len(w.pieces) == maxPieces(p.Length) || w.tokens+int64(ex.Tokens()) > p.Window {
		if err := p.pack(split, w.tokens/carriedShare); err != nil {
			return err
		}
	}
	if err := p.add(w, ex, 0, ex.Tokens()); err != nil {
		return err
	}
	if w.tokens >= p.Wanted(split) {
		return p.pack(split, 0)
	}
	return nil
}

// Room reports whether a split's window has room for n more examples, of so many tokens, before it is packed; under
// pack.Wrapped, whether all are wanted.
func (p *Packing) Room(split, n int, tokens int64) bool {
	w := &p.windows[split]
	tokens += w.tokens
	return tokens < p.Wanted(split) && (p.Policy == pack.Wrapped || len(w.pieces)+n <= maxPieces(p.Length) && tokens <= p.Window)
}

// AddRows is BeginDocument for each document and Add for its examples, for which there is Room.
func (p *Packing) AddRows(split int, r *dataset.Rows) error {
	at, width := 0, p.Schema.IDWidth()
	p.example.Document = r.Document - 1
	for i, n := range r.Lengths {
		ex := &p.example
		if ex.Part = r.Parts[i]; ex.Part == 0 {
			p.BeginDocument()
			ex.Document++
		}
		ex.Row, ex.Length = r.IDs[at*width:][:int(n)*width], int(n)
		if p.Schema.LossMask {
			ex.LossMask = r.LossMask[at:][:n]
		}
		if err := p.Add(split, ex); err != nil {
			return err
		}
		at += int(n)
	}
	return nil
}

// add appends the tokens from..to of an example to a window.
func (p *Packing) add(w *window, ex *example.Example, from, to int) (err error) {
	p.allocate(w)
	if ex.Row != nil {
		width := p.Schema.IDWidth()
		w.ids = append(w.ids, ex.Row[from*width:to*width]...)
	} else if w.ids, err = dataset.AppendIDs(w.ids, ex.InputIDs[from:to], p.Schema); err != nil {
		return err
	}
	if p.Schema.LossMask {
		w.mask = append(w.mask, ex.LossMask[from:to]...)
	}
	n := int32(to - from)
	if last := len(w.pieces) - 1; p.Policy == pack.Wrapped && last >= 0 && ex.Part > 0 &&
		w.pieces[last].document == ex.Document { // the document continues
		w.pieces[last].length += n
	} else {
		w.pieces = append(w.pieces, windowPiece{document: ex.Document, at: w.tokens, part: ex.Part, length: n})
	}
	w.tokens += int64(n)
	return nil
}

// allocate makes a window's buffers once, as large as they ever get. Their unused parts take no
// memory.
func (p *Packing) allocate(w *window) {
	if w.ids != nil {
		return
	}
	tokens, pieces := p.Window, maxPieces(p.Length)
	if p.Policy == pack.Wrapped {
		tokens, pieces = int64(p.Length), p.Length
	}
	w.ids, w.pieces = make([]byte, 0, tokens*int64(p.Schema.IDWidth())), make([]windowPiece, 0, pieces)
	if p.Schema.LossMask {
		w.mask = make([]bool, 0, tokens)
	}
}

// wrap appends an example to the row that is being filled, and writes each row that is full.
func (p *Packing) wrap(split int, ex *example.Example) error {
	w := &p.windows[split]
	for from := 0; from < ex.Tokens(); {
		to := min(ex.Tokens(), from+p.Length-int(w.tokens))
		if err := p.add(w, ex, from, to); err != nil {
			return err
		}
		if from = to; int(w.tokens) == p.Length {
			if err := p.pack(split, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack packs what a split's window holds and writes the rows. Documents of the emptiest rows
// stay for the next window, up to the given number of tokens: later documents may fill them.
func (p *Packing) pack(split int, carry int64) error {
	w := &p.windows[split]
	if w.tokens == 0 {
		return nil
	}
	w.tokens = 0 // the rows count from here on
	p.Changed()
	if p.Policy == pack.Wrapped {
		p.startRow(w.pieces[0])
		for _, piece := range w.pieces {
			p.addToRow(w, piece)
		}
		w.empty()
		return p.write(split)
	}
	p.lengths = slices.Grow(p.lengths[:0], len(w.pieces))
	for _, piece := range w.pieces {
		p.lengths = append(p.lengths, piece.length)
	}
	rows := p.packer.Pack(p.lengths)
	p.choose(rows, carry)
	for i := range rows.Len() {
		row := rows.Row(i)
		if p.carried[row[0].Item] {
			continue
		}
		first := slices.MinFunc(row, func(a, b pack.Piece) int { return int(a.Item - b.Item) })
		p.startRow(w.pieces[first.Item])
		for _, piece := range row {
			p.addToRow(w, w.pieces[piece.Item])
		}
		if err := p.write(split); err != nil {
			return err
		}
	}
	p.lent.Return()
	p.carry(w)
	p.Changed()
	return nil
}

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
	old, width := *w, int64(p.Schema.IDWidth())
	w.empty()
	for i, piece := range old.pieces {
		if !p.carried[i] {
			continue
		}
		from, to := piece.at, piece.at+int64(piece.length)
		piece.at = w.tokens
		w.pieces = append(w.pieces, piece) // none moves to a later place
		w.ids = append(w.ids, old.ids[from*width:to*width]...)
		if p.Schema.LossMask {
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
	*r = dataset.Example{Parts: r.Parts[:0], LossMask: r.LossMask[:0], Segments: r.Segments[:0], Pieces: r.Pieces[:0],
		Document: first.document, Part: first.part}
	if p.packer != nil {
		r.Lent = &p.lent
	}
}

func (p *Packing) addToRow(w *window, piece windowPiece) {
	r, width := &p.row, int64(p.Schema.IDWidth())
	r.Parts = append(r.Parts, w.ids[piece.at*width:][:int64(piece.length)*width])
	r.Length += int(piece.length)
	if p.Schema.LossMask {
		r.LossMask = append(r.LossMask, w.mask[piece.at:][:piece.length]...)
	}
	r.Segments, r.Pieces = append(r.Segments, piece.length), append(r.Pieces, dataset.Piece{Document: piece.document, Part: piece.part})
}

// write writes the row that was put together, unless nothing in it would be trained on.
func (p *Packing) write(split int) error {
	if p.Schema.LossMask && !slices.Contains(p.row.LossMask, true) {
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

package ingest

import (
	"cmp"
	"slices"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/option"
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

// windowTokens returns how many tokens are packed together.
func windowTokens(s *option.Settings) int64 {
	return cmp.Or(s.PackWindow, max(minWindowTokens, windowRows*int64(s.MaxLength)))
}

func maxPieces(length int) int {
	return min(max(windowPieces*length, minWindowPieces), maxWindowPieces)
}

// The splits by their number in packing.
const (
	trainWindow = iota
	valWindow
)

var splits = [...]string{trainWindow: splitTrain, valWindow: splitVal}

// packing fills rows with documents, between the cutter and the shards. Each split has an open
// window of documents; when it is full, or when what it holds reaches a budget, it is packed and
// its rows are written. Under pack.Wrapped the window is the row that is being filled.
type packing struct {
	policy  pack.Policy
	length  int
	window  int64 // tokens
	width   int   // bytes an id takes in a window
	masked  bool  // examples have a loss mask
	suffix  int   // special tokens at the end of a document
	state   *cursor
	windows [len(splits)]window

	packer  *pack.Packer // nil for pack.Wrapped
	lengths []int32      // scratch, of a window's pieces
	carried []bool       // scratch: which of them stay in the window
	row     shard.Example
}

// window holds the pieces of documents that wait to be packed.
type window struct {
	pieces []windowPiece
	ids    []byte // of all pieces, back to back, little-endian
	mask   []byte // of all pieces, back to back: 1 where a token is trained on
	tokens int64
}

type windowPiece struct {
	document     int64
	at           int64 // of its first token among the window's
	part, length int32
}

const windowPieceBytes = 24

// newPacking returns a packing that counts into state, or nil if rows are not packed.
func (b *build) newPacking(state *cursor) *packing {
	o := &b.opts
	if o.Pack == pack.None {
		return nil
	}
	c := b.cutterOptions()
	state.DroppedTokens = new(int64)
	p := &packing{state: state, policy: o.Pack, length: o.MaxLength, window: windowTokens(&o.Settings),
		width:  b.shards.Schema.IDWidth(),
		masked: b.shards.Schema.LossMask, suffix: len(c.Suffix)}
	if p.policy != pack.Wrapped {
		p.packer = pack.New(p.policy, p.length)
	}
	return p
}

// packingBytes bounds the memory of packing.
func packingBytes(o *option.Options, schema shard.Schema) int64 {
	if o.Pack == pack.None {
		return 0
	}
	windows, perToken := int64(1), int64(schema.IDWidth())
	if o.MaxValExamples > 0 || len(o.ValSources) > 0 {
		windows++
	}
	if schema.LossMask {
		perToken++
	}
	const rowBytes = 4 + 1 + 4 // an id, its mask, and the segment that it may be
	length, pieces := int64(o.MaxLength), int64(maxPieces(o.MaxLength))
	if o.Pack == pack.Wrapped {
		return windows*length*(perToken+windowPieceBytes) + length*(rowBytes+savedPieceBytes)
	}
	window := windowTokens(&o.Settings)*perToken + pieces*windowPieceBytes
	return windows*window + pack.Bytes(o.MaxLength, pieces) + length*rowBytes + pieces*(4+1+savedPieceBytes)
}

// packExample takes an example of a split from the cutter.
func (f *flusher) packExample(number int, ex *example.Example) error {
	p := f.pack
	w := &p.windows[number]
	f.since++ // a checkpoint keeps it
	switch {
	case p.policy == pack.BFD && ex.Part > 0:
		p.state.PackRest += int64(len(ex.InputIDs))
		return nil
	case p.policy == pack.Wrapped:
		if err := f.wrap(number, ex); err != nil {
			return err
		}
	default:
		if len(w.pieces) == maxPieces(p.length) || w.tokens+int64(len(ex.InputIDs)) > p.window {
			if err := f.packWindow(number, w.tokens/carriedShare); err != nil {
				return err
			}
		}
		p.add(w, ex, 0, len(ex.InputIDs))
		if w.tokens >= f.wanted(number) {
			if err := f.packWindow(number, 0); err != nil {
				return err
			}
		}
	}
	if o := &f.b.opts; o.MaxTokens > 0 && f.state.Tokens+p.heldTokens() >= o.MaxTokens {
		return f.packWindows()
	}
	f.heldOut()
	return nil
}

// wanted returns how many tokens of a split are worth holding: those of the rows that its budget
// leaves.
func (f *flusher) wanted(number int) int64 {
	o, s := &f.b.opts, &f.state
	rows, have := o.MaxExamples, s.Train
	if number == valWindow {
		rows, have = o.MaxValExamples, s.Val
	}
	if rows == 0 {
		return f.pack.window
	}
	return (rows - have) * int64(o.MaxLength)
}

// heldOut gives the holdout the size of its split so far, including what waits to be packed.
func (f *flusher) heldOut() {
	f.hold.have = f.state.Val + f.pack.windows[valWindow].tokens/int64(f.pack.length)
}

// add appends the tokens from..to of an example to a window.
func (p *packing) add(w *window, ex *example.Example, from, to int) {
	p.allocate(w)
	for _, id := range ex.InputIDs[from:to] {
		if p.width == 2 {
			w.ids = append(w.ids, byte(id), byte(id>>8))
		} else {
			w.ids = append(w.ids, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
	}
	if p.masked {
		for _, trained := range ex.LossMask[from:to] {
			w.mask = append(w.mask, boolByte(trained))
		}
	}
	n := int32(to - from)
	if last := len(w.pieces) - 1; p.policy == pack.Wrapped && last >= 0 && ex.Part > 0 &&
		w.pieces[last].document == ex.Document { // the document continues
		w.pieces[last].length += n
	} else {
		w.pieces = append(w.pieces, windowPiece{document: ex.Document, at: w.tokens, part: ex.Part, length: n})
	}
	w.tokens += int64(n)
}

// allocate makes a window's buffers once, as large as they ever get. Their unused parts take no
// memory.
func (p *packing) allocate(w *window) {
	if w.ids != nil {
		return
	}
	tokens, pieces := p.window, maxPieces(p.length)
	if p.policy == pack.Wrapped {
		tokens, pieces = int64(p.length), p.length
	}
	w.ids, w.pieces = make([]byte, 0, tokens*int64(p.width)), make([]windowPiece, 0, pieces)
	if p.masked {
		w.mask = make([]byte, 0, tokens)
	}
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// wrap appends an example to the row that is being filled, and writes each row that is full.
func (f *flusher) wrap(number int, ex *example.Example) error {
	p := f.pack
	w := &p.windows[number]
	for from := 0; from < len(ex.InputIDs); {
		to := min(len(ex.InputIDs), from+p.length-int(w.tokens))
		p.add(w, ex, from, to)
		if from = to; int(w.tokens) == p.length {
			if err := f.packWindow(number, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// packWindow packs what a split's window holds and writes the rows. Documents of the emptiest rows
// stay for the next window, up to the given number of tokens: later documents may fill them.
func (f *flusher) packWindow(number int, carry int64) error {
	p := f.pack
	w := &p.windows[number]
	if w.tokens == 0 {
		return nil
	}
	split := splits[number]
	w.tokens = 0 // from here on the rows count
	f.heldOut()
	if p.policy == pack.Wrapped {
		p.startRow(w.pieces[0])
		for _, piece := range w.pieces {
			p.addToRow(w, piece)
		}
		w.empty()
		return f.writePacked(split)
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
		if err := f.writePacked(split); err != nil {
			return err
		}
	}
	p.carry(w)
	f.heldOut()
	return nil
}

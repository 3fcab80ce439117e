package sampler

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/pack"
)

const (
	// packedRows is about how many rows a packing window fills, by the mean length of the sources'
	// rows.
	packedRows = 256
	// minPackWindow and maxPackWindow bound the window in rows of the sources.
	minPackWindow = 1 << 12
	maxPackWindow = 1 << 17
	// maxNumbers bounds the row numbers of a window.
	maxNumbers = 1 << 18
)

// PackOptions configures how rows are filled with the rows of an order. Every field may change the order of
// rows.
type PackOptions struct {
	Policy  pack.Policy
	Length  int   // tokens of a full row
	Tokens  int64 // in all sources
	Longest int64 // tokens of their longest row
}

// Packed is an order of packed rows. It is not safe for concurrent use.
type Packed struct {
	order         *Order
	opts          PackOptions
	packer        *pack.Packer
	window        int64 // rows of the sources
	numbersPerRow int64 // numbers of packed rows for each row of the sources
	user          *user // of windows

	lengths []int32 // scratch of a window
}

// packWindow is what a part has that is a packed window: the numbers of its rows lie between start and next.
type packWindow struct {
	units    []Item // rows from the sources
	rows     pack.Rows
	perm     permutation // shuffles the rows, if set
	shuffled bool
}

// NewPacked returns an order of packed rows, which takes the order's LocateFunc.
func NewPacked(order *Order, o PackOptions) (*Packed, error) {
	if order.opts.Bucket > 0 {
		return nil, fault.BadOption("bucket", nil,
			"packed rows have one length, so there is nothing to sort; leave it out")
	}
	p := &Packed{order: order, opts: o, numbersPerRow: numbersPerRow(o), window: windowOf(order.rows, o),
		user: alone()}
	if order.rows > MaxPosition/MaxSources/p.numbersPerRow {
		return nil, fault.BadOption("max_length", nil, "rows of up to %d tokens cannot be cut this small",
			o.Longest)
	}
	p.packer = pack.New(o.Policy, o.Length)
	return p, nil
}

// numbersPerRow returns how many packed rows a row of a source makes at most.
func numbersPerRow(o PackOptions) int64 {
	if o.Policy == pack.BFD {
		return 1
	}
	return max(1, (o.Longest+int64(o.Length)-1)/int64(o.Length))
}

// windowOf returns the size of a window in rows of the sources, a power of two.
func windowOf(rows int64, o PackOptions) int64 {
	mean := max(1, o.Tokens/rows)
	want := (packedRows*int64(o.Length) + mean - 1) / mean
	window := int64(1)
	for window < min(max(want, minPackWindow), maxPackWindow, max(1, maxNumbers/numbersPerRow(o))) {
		window *= 2
	}
	return window
}

// PackWindow returns the size of a window in rows of the sources for an order of the given number
// of rows.
func PackWindow(rows int64, o PackOptions) int64 { return min(windowOf(rows, o), rows) }

// PackBytes returns the memory of a Packed whose order has the given number of rows.
func PackBytes(rows int64, o PackOptions) int64 {
	window := PackWindow(rows, o)
	pieces := window * numbersPerRow(o)
	if o.Policy == pack.Wrapped {
		pieces += window // a packed row may end within a row of the source
	}
	return window*(itemBytes+4) + pack.Bytes(o.Length, pieces)
}

// Rows returns the number of row numbers in an epoch. Not every number has a row: windows skip
// some.
func (p *Packed) Rows() int64 { return p.order.rows * p.numbersPerRow }

// seek returns the window that holds the number of a row.
func (p *Packed) seek(row int64) (*part, error) {
	if at := p.user.at; at != nil && row >= at.start && row < at.next {
		return at, nil
	}
	epoch, i := row/p.Rows(), row%p.Rows()
	number := i / (p.window * p.numbersPerRow)
	start := epoch*p.Rows() + number*p.window*p.numbersPerRow
	return p.user.move(start, func(w *part) error { return p.pack(w, epoch, number) })
}

// pack packs a window of an epoch.
func (p *Packed) pack(w *part, epoch, number int64) (err error) {
	n, first := min(p.window, p.order.rows-number*p.window), epoch*p.order.rows+number*p.window
	w.units = p.order.appendShuffled(w.units[:0], first, int(n))
	if err := p.order.locate(w.units); err != nil {
		return err
	}
	p.lengths = slices.Grow(p.lengths[:0], int(n))[:n]
	for i := range w.units {
		p.lengths[i] = w.units[i].Length
	}
	p.packer.PackInto(&w.rows, p.lengths)
	if int64(w.rows.Len()) > n*p.numbersPerRow {
		return fmt.Errorf("a window of %d rows makes %d packed rows, more than its %d numbers", n, w.rows.Len(),
			n*p.numbersPerRow)
	}
	// Best fit decreasing makes the rows with the longest pieces first.
	w.shuffled = p.order.opts.Shuffle != None && p.opts.Policy != pack.Wrapped && w.rows.Len() > 0
	if w.shuffled {
		w.perm = newPermutation(uint64(w.rows.Len()),
			key(p.order.opts.Seed, purposePack, uint64(epoch), uint64(number)))
	}
	w.next = w.start + n*p.numbersPerRow
	return nil
}

// mostRows returns how many packed rows n rows of the sources make at most. A row is only begun when a piece fits
// no other, so that each before it has no room for another of the longest.
func (p *Packed) mostRows(n int64) int64 {
	longest, length := p.opts.Longest, int64(p.opts.Length)
	if longest < 1 || longest > length {
		return n * p.numbersPerRow
	}
	return (n-1)/(length/longest) + 1
}

// pastRows returns where the next window begins if no row of a window can have a number, whatever the lengths are.
func (p *Packed) pastRows(number int64) (next int64, past bool) {
	epoch, i := number/p.Rows(), number%p.Rows()
	from := i / (p.window * p.numbersPerRow) * p.window // the rows of the sources in the window begin here
	n := min(p.window, p.order.rows-from)
	start := epoch*p.Rows() + from*p.numbersPerRow
	return start + n*p.numbersPerRow, number-start >= p.mostRows(n)
}

// Row returns the row with a number. ok is false if no row has it: windows skip some.
func (p *Packed) Row(number int64) (row PackedRow, ok bool, err error) {
	w, err := p.seek(number)
	if err != nil {
		return PackedRow{}, false, err
	}
	if i := number - w.start; i < int64(w.rows.Len()) {
		return PackedRow{Position: number, Pieces: w.row(i), Units: w.units}, true, nil
	}
	return PackedRow{}, false, nil
}

// With returns the numbers of the packed rows that hold tokens of the row at a position of the order
// of the sources' rows. There are none if the policy drops it.
func (p *Packed) With(position int64) (numbers []int64, err error) {
	epoch, i := position/p.order.rows, position%p.order.rows
	first := epoch*p.Rows() + i/p.window*p.window*p.numbersPerRow
	w, err := p.seek(first)
	if err != nil {
		return nil, err
	}
	for n := range int64(w.rows.Len()) {
		for _, piece := range w.row(n) {
			if int64(piece.Item) == i%p.window {
				numbers = append(numbers, w.start+n)
				break
			}
		}
	}
	return numbers, nil
}

func (w *packWindow) row(i int64) []pack.Piece {
	if w.shuffled {
		i = int64(w.perm.at(uint64(i)))
	}
	return w.rows.Row(int(i))
}

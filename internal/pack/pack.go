package pack

import "slices"

// Piece is a run of an item's tokens.
type Piece struct {
	Item int32 // index of the item
	From int32 // its first token
	Len  int32 // tokens, at least 1
}

// Rows are packed rows.
type Rows struct {
	Dropped int64 // tokens of items that are in no row
	pieces  []Piece
	ends    []int32 // where each row ends, in pieces
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.ends) }

// Row returns the pieces of row i.
func (r *Rows) Row(i int) []Piece {
	from := int32(0)
	if i > 0 {
		from = r.ends[i-1]
	}
	return r.pieces[from:r.ends[i]]
}

// A Packer packs items into rows of one length by one policy.
type Packer struct {
	policy Policy
	length int32
	rows   Rows // Pack's

	cut   []Piece // the items, cut into pieces of at most length tokens
	order []int32 // the pieces in the order in which they get rows
	next  []int32 // scratch: where in order the next piece of a length goes
	rowOf []int32 // each piece's row, in that order
	sizes []int32 // pieces of each row
	room  roomIndex
}

// New returns a packer for rows of length tokens, 1 to MaxLength. The policy must not be None.
func New(policy Policy, length int) *Packer {
	if length < 1 || length > MaxLength || policy == None {
		panic("pack: invalid policy or length")
	}
	return &Packer{policy: policy, length: int32(length)}
}

// Pack packs items of the given lengths. The rows are valid until the next call.
func (p *Packer) Pack(lengths []int32) *Rows {
	p.PackInto(&p.rows, lengths)
	return &p.rows
}

// PackInto is Pack with rows that are the caller's, whose memory it uses again.
func (p *Packer) PackInto(rows *Rows, lengths []int32) {
	*rows = Rows{pieces: rows.pieces[:0], ends: rows.ends[:0]}
	if p.policy == Wrapped {
		rows.wrap(lengths, p.length)
		return
	}
	rows.Dropped = p.cutItems(lengths)
	p.assignRows()
	p.gather(rows)
}

// wrap fills rows one after another.
func (r *Rows) wrap(lengths []int32, length int32) {
	room := length
	for i, n := range lengths {
		for from := int32(0); from < n; {
			k := min(n-from, room)
			r.pieces = append(r.pieces, Piece{int32(i), from, k})
			from += k
			if room -= k; room == 0 {
				r.ends = append(r.ends, int32(len(r.pieces)))
				room = length
			}
		}
	}
	if room < length {
		r.ends = append(r.ends, int32(len(r.pieces)))
	}
}

// cutItems cuts the items into pieces that fit a row, and returns how many tokens are in none.
func (p *Packer) cutItems(lengths []int32) (dropped int64) {
	p.cut = p.cut[:0]
	for i, n := range lengths {
		for from := int32(0); from < n; from += p.length {
			if from > 0 && p.policy == BFD {
				dropped += int64(n - from)
				break
			}
			p.cut = append(p.cut, Piece{int32(i), from, min(n-from, p.length)})
		}
	}
	return dropped
}

// assignRows chooses a row for each piece, longest first.
func (p *Packer) assignRows() {
	p.sortPieces()
	p.room.reset(int(p.length))
	p.rowOf, p.sizes = slices.Grow(p.rowOf[:0], len(p.cut)), p.sizes[:0]
	for _, o := range p.order {
		n := p.cut[o].Len
		row, room := p.room.take(n)
		if row < 0 {
			row, room = int32(len(p.sizes)), p.length
			p.sizes = append(p.sizes, 0)
		}
		p.sizes[row]++
		p.rowOf = append(p.rowOf, row)
		p.room.put(row, room-n)
	}
}

// sortPieces orders the pieces by their length, longest first, and those of one length as they come.
func (p *Packer) sortPieces() {
	p.next = slices.Grow(p.next[:0], int(p.length)+1)[:p.length+1]
	clear(p.next)
	for i := range p.cut {
		p.next[p.cut[i].Len]++
	}
	at := int32(len(p.cut))
	for n, count := range p.next {
		at -= count
		p.next[n] = at
	}
	p.order = slices.Grow(p.order[:0], len(p.cut))[:len(p.cut)]
	for i := range p.cut {
		at := &p.next[p.cut[i].Len]
		p.order[*at] = int32(i)
		*at++
	}
}

// gather puts the pieces of each row next to each other.
func (p *Packer) gather(r *Rows) {
	end := int32(0)
	for i, n := range p.sizes {
		p.sizes[i] = end // where the row's next piece goes
		end += n
	}
	r.pieces = slices.Grow(r.pieces[:0], int(end))[:end]
	for i, o := range p.order {
		at := &p.sizes[p.rowOf[i]]
		r.pieces[*at] = p.cut[o]
		*at++
	}
	r.ends = append(r.ends, p.sizes...)
}

// Bytes bounds the memory of a packer for items that make at most the given number of pieces.
func Bytes(length int, pieces int64) int64 {
	const (
		piece = 12
		// per piece: the piece as cut and as placed, its order and its row; the row's size, end and
		// link; slack of grown slices
		perPiece = (2*piece + 4 + 4 + 2*4 + 4) * 5 / 4
	)
	return pieces*perPiece + 4*(int64(length)+1) + roomBytes(int64(length))
}

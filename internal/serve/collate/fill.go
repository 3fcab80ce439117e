package collate

import "encoding/binary"

// Fill fills dst with the elements of column c from element `from` on, counted through all rows:
// little-endian, Width bytes each. len(dst) must be a multiple of Width, and the column must have
// that many elements left.
func (b *Batch) Fill(dst []byte, c Column, from int) {
	length := b.Length(c)
	for row, col := from/max(length, 1), from%max(length, 1); len(dst) > 0; row, col = row+1, 0 {
		n := min(length-col, len(dst)/b.width)
		b.fillRow(dst[:n*b.width], c, &b.rows[row], col, length)
		dst = dst[n*b.width:]
	}
}

// fillRow writes the elements of one row from index col on.
func (b *Batch) fillRow(dst []byte, c Column, r *rowMeta, col, length int) {
	have := int(r.length)
	if c == LabelIDs && b.opts.Labels == Seq2Seq {
		have = int(r.labels)
	}
	// The row is three runs: padding on the left, tokens, padding on the right. dst covers a part
	// of them.
	begin := 0
	if b.opts.Left {
		begin = length - have
	}
	n := len(dst) / b.width
	lead := max(0, min(begin-col, n))
	from := max(0, col+lead-begin)
	count := max(0, min(have-from, n-lead))
	pad := padding[c]
	if c == InputIDs {
		pad = int64(b.opts.PadID)
	}
	b.fill(dst[:lead*b.width], pad)
	tokens := dst[lead*b.width : (lead+count)*b.width]
	b.fill(dst[(lead+count)*b.width:], pad)
	if count == 0 {
		return
	}
	if c == LabelIDs && r.position < 0 {
		b.fill(tokens, Ignored)
		return
	}
	switch c {
	case InputIDs:
		b.widen(tokens, b.have.IDs[(int(r.id)+from)*b.opts.TokenBytes:])
	case AttentionMask:
		b.fill(tokens, 1)
	case LabelIDs:
		if b.opts.Labels == Seq2Seq {
			b.widen(tokens, b.have.Labels[(int(r.label)+from)*b.opts.TokenBytes:])
			return
		}
		b.widen(tokens, b.have.IDs[(int(r.id)+from)*b.opts.TokenBytes:])
		if r.mask >= 0 {
			b.ignore(tokens, b.have.LossMask[int(r.mask)+from:])
		}
		if b.opts.MaskBorders && b.opts.Packed {
			b.ignoreFirst(tokens, b.have.Segments[r.segment:r.segment+r.segments], from)
		}
	case PositionIDs, SegmentIDs:
		b.fillSegments(tokens, c, b.have.Segments[r.segment:r.segment+r.segments], from)
	}
}

// padding holds the padding value of each column; that of InputIDs is an option.
var padding = [...]int64{LabelIDs: Ignored, PositionIDs: 0, SegmentIDs: 0}

// fill writes v into every element of dst.
func (b *Batch) fill(dst []byte, v int64) {
	if v == 0 {
		clear(dst)
		return
	}
	if b.width == 4 {
		for ; len(dst) >= 4; dst = dst[4:] {
			binary.LittleEndian.PutUint32(dst, uint32(v))
		}
		return
	}
	for ; len(dst) >= 32; dst = dst[32:] {
		d := dst[:32]
		binary.LittleEndian.PutUint64(d, uint64(v))
		binary.LittleEndian.PutUint64(d[8:], uint64(v))
		binary.LittleEndian.PutUint64(d[16:], uint64(v))
		binary.LittleEndian.PutUint64(d[24:], uint64(v))
	}
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, uint64(v))
	}
}

// widen writes as many ids of src as dst has elements.
func (b *Batch) widen(dst, src []byte) {
	switch {
	case b.opts.TokenBytes == 2 && b.width == 8:
		// Four ids per load: this is the hottest loop of the server.
		for len(dst) >= 32 && len(src) >= 8 {
			v, d := binary.LittleEndian.Uint64(src), dst[:32]
			binary.LittleEndian.PutUint64(d, v&0xffff)
			binary.LittleEndian.PutUint64(d[8:], v>>16&0xffff)
			binary.LittleEndian.PutUint64(d[16:], v>>32&0xffff)
			binary.LittleEndian.PutUint64(d[24:], v>>48)
			dst, src = dst[32:], src[8:]
		}
		for ; len(dst) >= 8; dst, src = dst[8:], src[2:] {
			binary.LittleEndian.PutUint64(dst, uint64(binary.LittleEndian.Uint16(src)))
		}
	case b.opts.TokenBytes == 2:
		for ; len(dst) >= 4; dst, src = dst[4:], src[2:] {
			binary.LittleEndian.PutUint32(dst, uint32(binary.LittleEndian.Uint16(src)))
		}
	case b.width == 8:
		for ; len(dst) >= 8; dst, src = dst[8:], src[4:] {
			binary.LittleEndian.PutUint64(dst, uint64(int64(int32(binary.LittleEndian.Uint32(src)))))
		}
	default:
		copy(dst, src)
	}
}

// ignore writes Ignored over the elements whose loss mask is false.
func (b *Batch) ignore(dst []byte, lossMask []bool) {
	for i := range len(dst) / b.width {
		if lossMask[i] {
			continue
		}
		b.put(dst[i*b.width:], Ignored)
	}
}

// ignoreFirst writes Ignored over the first element of each segment. dst begins at index from of
// the row.
func (b *Batch) ignoreFirst(dst []byte, segments []int32, from int) {
	begin := 0
	for _, n := range segments {
		if at := (begin - from) * b.width; at >= len(dst) {
			return
		} else if at >= 0 {
			b.put(dst[at:], Ignored)
		}
		begin += int(n)
	}
}

func (b *Batch) put(dst []byte, v int64) {
	if b.width == 4 {
		binary.LittleEndian.PutUint32(dst, uint32(v))
	} else {
		binary.LittleEndian.PutUint64(dst, uint64(v))
	}
}

// fillSegments writes, for the tokens from index from on, their index within the document
// (PositionIDs) or the number of the document in the row, counted from 1 (SegmentIDs).
func (b *Batch) fillSegments(dst []byte, c Column, segments []int32, from int) {
	end := 0
	for i, n := range segments {
		begin := end
		end += int(n)
		for ; from < end && len(dst) > 0; from++ {
			v := int64(i + 1)
			if c == PositionIDs {
				v = int64(from - begin)
			}
			b.put(dst, v)
			dst = dst[b.width:]
		}
	}
}

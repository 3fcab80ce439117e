package collate

import (
	"encoding/binary"
	"math/bits"
)

// Fill fills dst with the elements of column c from element `from` on, counted through all rows:
// little-endian, width bytes each. The width is 4 or 8, or TokenBytes for InputIDs. len(dst) must be
// a multiple of it, and the column must have that many elements left.
func (b *Batch) Fill(dst []byte, c Column, width, from int) {
	length := b.Length(c)
	for row, col := from/max(length, 1), from%max(length, 1); len(dst) > 0; row, col = row+1, 0 {
		n := min(length-col, len(dst)/width)
		b.fillRow(dst[:n*width], c, width, &b.rows[row], col)
		dst = dst[n*width:]
	}
}

// fillRow writes the elements of one row from index col on.
func (b *Batch) fillRow(dst []byte, c Column, width int, r *rowMeta, col int) {
	have := int(r.length)
	if c == LabelIDs && b.opts.Labels == Seq2Seq {
		have = int(r.labels)
	}
	// The row is three runs: padding on the left, tokens, padding on the right. dst covers a part
	// of them.
	begin := 0
	if b.opts.Left {
		begin = b.Length(c) - have
	}
	n := len(dst) / width
	lead := max(0, min(begin-col, n))
	from := max(0, col+lead-begin)
	count := max(0, min(have-from, n-lead))
	pad := padding[c]
	if c == InputIDs {
		pad = int64(b.opts.PadID)
	}
	fill(dst[:lead*width], width, pad)
	tokens := dst[lead*width : (lead+count)*width]
	fill(dst[(lead+count)*width:], width, pad)
	if count == 0 {
		return
	}
	if c == LabelIDs && r.position < 0 {
		fill(tokens, width, Ignored)
		return
	}
	switch c {
	case InputIDs:
		b.widen(tokens, width, b.have.IDs[(int(r.id)+from)*b.opts.TokenBytes:])
	case AttentionMask:
		fill(tokens, width, 1)
	case LabelIDs:
		if b.opts.Labels == Seq2Seq {
			b.widen(tokens, width, b.have.Labels[(int(r.label)+from)*b.opts.TokenBytes:])
			return
		}
		b.widen(tokens, width, b.have.IDs[(int(r.id)+from)*b.opts.TokenBytes:])
		if r.mask >= 0 {
			ignore(tokens, width, b.have.LossMask[int(r.mask)+from:])
		}
		if b.opts.MaskBorders && b.opts.Packed {
			ignoreFirst(tokens, width, b.have.Segments[r.segment:r.segment+r.segments], from)
		}
	case PositionIDs, SegmentIDs:
		fillSegments(tokens, c, width, b.have.Segments[r.segment:r.segment+r.segments], from)
	}
}

// padding holds the padding value of each column; that of InputIDs is an option.
var padding = [...]int64{LabelIDs: Ignored, PositionIDs: 0, SegmentIDs: 0}

// put writes v into the first element of dst.
func put(dst []byte, width int, v int64) {
	switch width {
	case 2:
		binary.LittleEndian.PutUint16(dst, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(dst, uint32(v))
	default:
		binary.LittleEndian.PutUint64(dst, uint64(v))
	}
}

// fill writes v into every element of dst.
func fill(dst []byte, width int, v int64) {
	if v == 0 {
		clear(dst)
		return
	}
	if width > 2 {
		word := wordOf(width, v, v)
		dst = dst[rampVectors(dst, [4]uint64{word, word, word, word}, 0):]
	}
	if len(dst) == 0 {
		return
	}
	put(dst, width, v)
	for n := width; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// widen writes as many ids of src as dst has elements.
func (b *Batch) widen(dst []byte, width int, src []byte) {
	if width == b.opts.TokenBytes {
		copy(dst, src)
		return
	}
	done := widenVectors(dst, src, b.opts.TokenBytes, width)
	dst, src = dst[done*width:], src[done*b.opts.TokenBytes:]
	switch {
	case b.opts.TokenBytes == 2 && width == 8:
		// This is the hottest loop of the server. Bytes that the compiler knows to be 0, as those of
		// v&0xffff, would be stored one by one, so ids are cut off by subtracting what is above them.
		for len(dst) >= 32 && len(src) >= 8 {
			v, d := binary.LittleEndian.Uint64(src), dst[:32]
			a, b, c := v>>16, v>>32, bits.RotateLeft64(v, 16)-v<<16
			binary.LittleEndian.PutUint64(d, v-a<<16)
			binary.LittleEndian.PutUint64(d[8:], a-b<<16)
			binary.LittleEndian.PutUint64(d[16:], b-c<<16)
			binary.LittleEndian.PutUint64(d[24:], c)
			dst, src = dst[32:], src[8:]
		}
		for ; len(dst) >= 8; dst, src = dst[8:], src[2:] {
			binary.LittleEndian.PutUint64(dst, uint64(binary.LittleEndian.Uint16(src)))
		}
	case b.opts.TokenBytes == 2:
		for len(dst) >= 16 && len(src) >= 8 {
			v, d := binary.LittleEndian.Uint64(src), dst[:16]
			binary.LittleEndian.PutUint64(d, v&0xffff|v<<16&0xffff_00000000)
			binary.LittleEndian.PutUint64(d[8:], v>>32&0xffff|v>>16&0xffff_00000000)
			dst, src = dst[16:], src[8:]
		}
		for ; len(dst) >= 4; dst, src = dst[4:], src[2:] {
			binary.LittleEndian.PutUint32(dst, uint32(binary.LittleEndian.Uint16(src)))
		}
	default:
		for ; len(dst) >= 8; dst, src = dst[8:], src[4:] {
			binary.LittleEndian.PutUint64(dst, uint64(int64(int32(binary.LittleEndian.Uint32(src)))))
		}
	}
}

// ignore writes Ignored over the elements whose loss mask is false.
func ignore(dst []byte, width int, lossMask []bool) {
	for i := range len(dst) / width {
		if !lossMask[i] {
			put(dst[i*width:], width, Ignored)
		}
	}
}

// ignoreFirst writes Ignored over the first element of each segment. dst begins at index from of
// the row.
func ignoreFirst(dst []byte, width int, segments []int32, from int) {
	begin := 0
	for _, n := range segments {
		if at := (begin - from) * width; at >= len(dst) {
			return
		} else if at >= 0 {
			put(dst[at:], width, Ignored)
		}
		begin += int(n)
	}
}

// fillSegments writes, for the tokens from index from on, their index within the document
// (PositionIDs) or the number of the document in the row, counted from 1 (SegmentIDs).
func fillSegments(dst []byte, c Column, width int, segments []int32, from int) {
	end := 0
	for i, length := range segments {
		begin := end
		if end += int(length); end <= from {
			continue
		}
		n := min(end-from, len(dst)/width)
		if c == PositionIDs {
			count(dst[:n*width], width, from-begin)
		} else {
			fill(dst[:n*width], width, int64(i+1))
		}
		if dst = dst[n*width:]; len(dst) == 0 {
			return
		}
		from = end
	}
}

// count writes v, v+1, … into the elements of dst.
func count(dst []byte, width, v int) {
	perVector := 32 / width
	var first [4]uint64
	for i := range first {
		at := v + i*perVector/4
		first[i] = wordOf(width, int64(at), int64(at+1))
	}
	done := rampVectors(dst, first, wordOf(width, int64(perVector), int64(perVector)))
	dst, v = dst[done:], v+done/width
	if width == 4 {
		for ; len(dst) >= 4; dst, v = dst[4:], v+1 {
			binary.LittleEndian.PutUint32(dst, uint32(v))
		}
		return
	}
	for ; len(dst) >= 32; dst, v = dst[32:], v+4 {
		d := dst[:32]
		binary.LittleEndian.PutUint64(d, uint64(v))
		binary.LittleEndian.PutUint64(d[8:], uint64(v+1))
		binary.LittleEndian.PutUint64(d[16:], uint64(v+2))
		binary.LittleEndian.PutUint64(d[24:], uint64(v+3))
	}
	for ; len(dst) >= 8; dst, v = dst[8:], v+1 {
		binary.LittleEndian.PutUint64(dst, uint64(v))
	}
}

// wordOf returns eight bytes of elements that are width bytes wide: v, and next if it fits.
func wordOf(width int, v, next int64) uint64 {
	if width == 4 {
		return uint64(uint32(v)) | uint64(next)<<32
	}
	return uint64(v)
}

package spbpe

import "unicode/utf8"

// maxSmall is the number of symbols of the longest chunk merged by scanning for the best pair.
const maxSmall = 64

// small is the scratch for a short chunk: a list of symbols, linked by position.
type small struct {
	id         [maxSmall]uint32
	key        [maxSmall]uint32 // rank<<6 | position of the pair at a position, noKey if it does not merge
	end        [maxSmall]uint16 // byte offset of the end of each symbol's first character
	next, prev [maxSmall + 1]uint8
}

const (
	posBits = 6
	noKey   = noRank<<posBits | (1<<posBits - 1) // greater than all others
)

// appendChunk appends the ids of a chunk in which spaces stand for U+2581.
func (e *Encoder) appendChunk(dst []uint32, chunk []byte) []uint32 {
	m, s := e.m, &e.small
	n, size := s.load(m, chunk, maxSmall)
	if size < len(chunk) {
		return e.appendLong(dst, chunk)
	}
	s.merge(m, n)
	var o output
	pieces := uint32(len(m.cfg.Pieces))
	for i := 0; i < n; i = int(s.next[i&(maxSmall-1)]) {
		if sym := s.id[i&(maxSmall-1)]; sym < pieces && !o.pending {
			dst = append(dst, sym)
		} else {
			dst = o.add(dst, m, sym)
		}
	}
	return o.end(dst, m)
}

// load decodes the first characters of text, at most limit, and looks up their pairs. It returns
// the number of symbols and bytes.
func (s *small) load(m *Model, text []byte, limit int) (n, size int) {
	before := byte(utf8.RuneSelf) // the previous character, if it is ASCII
	for ; n < limit && size < len(text); n++ {
		i := n & (maxSmall - 1)
		rank := uint32(noRank)
		if b := text[size]; b < utf8.RuneSelf {
			s.id[i] = m.ascii[b]
			if before < utf8.RuneSelf {
				rank = m.asciiPairs[before][b]
			} else if i > 0 {
				rank = m.merges.Find(s.id[i-1], s.id[i])
			}
			before = b
			size++
		} else {
			var k int
			s.id[i], k = m.symbol(text[size:])
			if i > 0 {
				rank = m.merges.Find(s.id[i-1], s.id[i])
			}
			before = utf8.RuneSelf
			size += k
		}
		if i > 0 {
			s.key[i-1] = rank<<posBits | uint32(i-1)
		}
		s.end[i] = uint16(size)
		s.next[i], s.prev[i] = uint8(i+1), uint8(i-1)
	}
	return n, size
}

// merge merges n symbols, at least one, whose pairs have been looked up.
func (s *small) merge(m *Model, n int) {
	s.key[n-1] = noKey
	width := (n + 7) / 8
	for i := n; i < width*8; i++ {
		s.key[i&(maxSmall-1)] = noKey
	}
	for {
		best := s.least(width)
		if best >= noRank<<posBits {
			return
		}
		i := int(best & (1<<posBits - 1))
		r := int(s.next[i]) & (maxSmall - 1)
		id := m.merges.result(s.id[i], s.id[r], best>>posBits)
		s.id[i] = id
		s.key[r] = noKey
		after := int(s.next[r])
		s.next[i] = uint8(after)
		s.prev[after] = uint8(i)
		if after < n {
			s.key[i] = m.merges.Find(id, s.id[after])<<posBits | uint32(i)
		} else {
			s.key[i] = noKey
			width = (i + 8) / 8
		}
		if i > 0 {
			p := int(s.prev[i]) & (maxSmall - 1)
			s.key[p] = m.merges.Find(s.id[p], id)<<posBits | uint32(p)
		}
	}
}

// least returns the smallest of the first 8*width keys, without a branch on the data.
func (s *small) least(width int) uint32 {
	a, b := uint64(noKey), uint64(noKey) // 64 bits wide, so that the compiler makes min a conditional move, not a jump
	for i := range width {
		q := (*[8]uint32)(s.key[i*8&(maxSmall-8):])
		a = min(a, min(min(uint64(q[0]), uint64(q[1])), min(uint64(q[2]), uint64(q[3]))))
		b = min(b, min(min(uint64(q[4]), uint64(q[5])), min(uint64(q[6]), uint64(q[7]))))
	}
	return uint32(min(a, b))
}

// symbol decodes the first character of text and returns its symbol and length.
func (m *Model) symbol(text []byte) (uint32, int) {
	r, size := rune(text[0]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(text)
	}
	if id := m.runes.get(r) & runeIDMask; id != noRuneID {
		return id, size
	}
	if r == ' ' {
		r = metaspace
	}
	return missing | uint32(r), size
}

// output writes symbols as ids. It holds back an unknown token, with which its neighbours may fuse.
type output struct{ pending bool }

func (o *output) add(dst []uint32, m *Model, sym uint32) []uint32 {
	if sym < uint32(len(m.cfg.Pieces)) {
		if o.pending {
			o.pending = false
			dst = append(dst, uint32(m.cfg.UnkID))
		}
		return append(dst, sym)
	}
	r := rune(sym &^ missing)
	if sym&missing == 0 {
		r = m.extra[int(sym)-len(m.cfg.Pieces)]
	}
	var buf [utf8.UTFMax]byte
	char := buf[:utf8.EncodeRune(buf[:], r)]
	whole := true
	for _, b := range char {
		whole = whole && m.cfg.ByteIDs[b] >= 0
	}
	if whole { // Hugging Face does not flush an unknown token here: it comes out after the bytes
		if o.pending && m.cfg.Scores != nil {
			o.pending = false
			dst = append(dst, uint32(m.cfg.UnkID))
		}
		for _, b := range char {
			dst = append(dst, uint32(m.cfg.ByteIDs[b]))
		}
		return dst
	}
	if o.pending && !m.cfg.FuseUnk {
		dst = append(dst, uint32(m.cfg.UnkID))
	}
	o.pending = true
	return dst
}

func (o *output) end(dst []uint32, m *Model) []uint32 {
	if o.pending {
		o.pending = false
		dst = append(dst, uint32(m.cfg.UnkID))
	}
	return dst
}

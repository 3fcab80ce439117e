package spbpe

import "unicode/utf8"

// maxSmall is the number of symbols of the longest chunk merged by scanning for the best pair.
const maxSmall = 64

// small is the scratch of a short chunk: a list of symbols, threaded through positions.
type small struct {
	id         [maxSmall]uint32
	key        [maxSmall]uint32 // rank<<6 | position of the pair at a position, noKey if it does not merge
	next, prev [maxSmall + 1]uint8
}

const (
	posBits = 6
	noKey   = noRank<<posBits | (1<<posBits - 1) // above all others
)

// appendChunk appends the ids of a chunk, whose spaces stand for U+2581.
func (e *Encoder) appendChunk(dst []uint32, chunk []byte) []uint32 {
	m := e.m
	s := &e.small
	n := 0
	for rest := chunk; len(rest) > 0; n++ {
		if n == maxSmall {
			return e.appendLong(dst, chunk)
		}
		if b := rest[0]; b < utf8.RuneSelf {
			s.id[n] = m.ascii[b]
			rest = rest[1:]
			continue
		}
		var size int
		s.id[n], size = m.symbol(rest)
		rest = rest[size:]
	}
	left := s.id[0]
	for i := 1; i < n; i++ {
		right := s.id[i]
		s.key[i-1] = m.merges.find(left, right)<<posBits | uint32(i-1)
		s.next[i-1], s.prev[i] = uint8(i), uint8(i-1)
		left = right
	}
	s.key[n-1] = noKey
	s.next[n-1] = uint8(n)
	keys := s.key[:n]
	for {
		least := uint64(noKey) // of 64 bits: the compiler makes this a conditional move, not a jump
		for _, k := range keys {
			least = min(least, uint64(k))
		}
		best := uint32(least)
		if best >= noRank<<posBits {
			break
		}
		i := int(best & (1<<posBits - 1))
		r := int(s.next[i])
		id := m.merges.result(s.id[i], s.id[r], best>>posBits)
		s.id[i] = id
		keys[r] = noKey
		after := int(s.next[r])
		s.next[i] = uint8(after)
		s.prev[after] = uint8(i)
		if after < n {
			keys[i] = m.merges.find(id, s.id[after])<<posBits | uint32(i)
		} else {
			keys[i] = noKey
			keys = keys[:i+1]
		}
		if i > 0 {
			p := int(s.prev[i])
			keys[p] = m.merges.find(s.id[p], id)<<posBits | uint32(p)
		}
	}
	var o output
	pieces := uint32(len(m.cfg.Pieces))
	for i := 0; i < n; i = int(s.next[i]) {
		if sym := s.id[i]; sym < pieces && !o.pending {
			dst = append(dst, sym)
		} else {
			dst = o.add(dst, m, sym)
		}
	}
	return o.end(dst, m)
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

// output writes symbols as ids; an unknown token is held back so that its neighbours may fuse with it.
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
	if whole { // Hugging Face does not flush an unknown token here: it comes out behind the bytes
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

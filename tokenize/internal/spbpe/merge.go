package spbpe

import "unicode/utf8"

// maxSmall is the number of symbols of the longest chunk merged by scanning for the best pair.
const maxSmall = 64

// small is the scratch of a short chunk: a list of symbols, threaded through positions.
type small struct {
	id         [maxSmall + 1]uint32
	merged     [maxSmall + 1]uint32 // what position i and its successor merge to
	key        [maxSmall + 8]uint64 // rank<<8 | position of that pair, ^0 if there is none
	next, prev [maxSmall + 1]uint8
}

// appendChunk appends the ids of a chunk, whose spaces stand for U+2581.
func (e *Encoder) appendChunk(dst []uint32, chunk []byte) []uint32 {
	m := e.m
	s := &e.small
	n := 0
	rest := chunk
	for len(rest) > 0 {
		if n == maxSmall {
			return e.appendLong(dst, chunk)
		}
		var size int
		s.id[n], size = m.symbol(rest)
		rest = rest[size:]
		n++
	}
	for i := 0; i+1 < n; i++ {
		rank, id := m.merges.find(s.id[i], s.id[i+1])
		s.merged[i] = id
		s.key[i] = packKey(rank, i)
		s.next[i] = uint8(i + 1)
		s.prev[i+1] = uint8(i)
	}
	s.next[n-1] = uint8(n)
	s.key[n-1] = ^uint64(0)
	last := n - 1 // keys behind it are all ^0
	for {
		best := s.key[0]
		for _, k := range s.key[1 : last+1] {
			best = min(best, k)
		}
		if best == ^uint64(0) {
			break
		}
		i := int(best & 0xFF)
		r := int(s.next[i])
		s.id[i] = s.merged[i]
		s.key[r] = ^uint64(0)
		after := int(s.next[r])
		s.next[i] = uint8(after)
		if after < n {
			s.prev[after] = uint8(i)
			rank, id := m.merges.find(s.id[i], s.id[after])
			s.merged[i] = id
			s.key[i] = packKey(rank, i)
		} else {
			s.key[i] = ^uint64(0)
			last = i
		}
		if i > 0 {
			p := int(s.prev[i])
			rank, id := m.merges.find(s.id[p], s.id[i])
			s.merged[p] = id
			s.key[p] = packKey(rank, p)
		}
	}
	var o output
	for i := 0; i < n; i = int(s.next[i]) {
		dst = o.add(dst, m, s.id[i])
	}
	return o.end(dst, m)
}

func packKey(rank uint32, pos int) uint64 {
	if rank == noRank {
		return ^uint64(0)
	}
	return uint64(rank)<<8 | uint64(pos)
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
	if sym&missing == 0 {
		if o.pending {
			o.pending = false
			dst = append(dst, uint32(m.cfg.UnkID))
		}
		return append(dst, sym)
	}
	var buf [utf8.UTFMax]byte
	char := buf[:utf8.EncodeRune(buf[:], rune(sym&^missing))]
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

// Package vocab maps token ids to their text and back in little memory: the text of all tokens lies in one blob, and the way
// back is an open-addressing table of ids, so that no Go string or map entry is held for each token.
package vocab

import "math/bits"

// Table is a vocabulary. It is immutable but for Alias.
type Table struct {
	blob    []byte
	offsets []uint32 // id -> start in blob; one more than there are ids
	missing []uint64 // bit set: the id has no token (nil: all have)
	table   []uint32 // hash -> id + 1
	aliases map[string]uint32
}

// New builds a table of tokens, whose index is the id; nil where an id is not used. Of equal tokens the first is found.
func New(tokens [][]byte) *Table {
	total := 0
	for _, t := range tokens {
		total += len(t)
	}
	v := &Table{
		blob:    make([]byte, 0, total),
		offsets: make([]uint32, 0, len(tokens)+1),
		table:   make([]uint32, 1<<bits.Len(uint(2*len(tokens)))),
	}
	for id, t := range tokens {
		v.offsets = append(v.offsets, uint32(len(v.blob)))
		v.blob = append(v.blob, t...)
		if t == nil {
			if v.missing == nil {
				v.missing = make([]uint64, (len(tokens)+63)/64)
			}
			v.missing[id/64] |= 1 << (id % 64)
			continue
		}
		mask := uint32(len(v.table) - 1)
		i := hash(t) & mask
		for v.table[i] != 0 {
			i = (i + 1) & mask
		}
		v.table[i] = uint32(id) + 1
	}
	v.offsets = append(v.offsets, uint32(len(v.blob)))
	return v
}

// Alias makes token another name of id. Call it before the table is shared.
func (v *Table) Alias(token string, id uint32) {
	if v.aliases == nil {
		v.aliases = map[string]uint32{}
	}
	v.aliases[token] = id
}

// Aliases says whether there are ids with several names.
func (v *Table) Aliases() bool { return len(v.aliases) > 0 }

func hash(b []byte) uint32 {
	h := uint64(len(b)) * 0x9E3779B97F4A7C15
	for len(b) >= 8 {
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		h = mix(h ^ x)
		b = b[8:]
	}
	var x uint64
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return uint32(mix(h^x) >> 20)
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x2D358DCCAA6C78A5, 0x8BB84B93962EACC9)
	return hi ^ lo
}

// Len is the largest id plus one.
func (v *Table) Len() int { return len(v.offsets) - 1 }

// Token gives the text of an id; ok is false where there is none. The caller must not change it.
func (v *Table) Token(id uint32) (text []byte, ok bool) {
	if int64(id) >= int64(v.Len()) || v.missing != nil && v.missing[id/64]&(1<<(id%64)) != 0 {
		return nil, false
	}
	return v.blob[v.offsets[id]:v.offsets[id+1]:v.offsets[id+1]], true
}

// ID gives the id of a token.
func (v *Table) ID(token []byte) (uint32, bool) {
	mask := uint32(len(v.table) - 1)
	for i := hash(token) & mask; v.table[i] != 0; i = (i + 1) & mask {
		id := v.table[i] - 1
		if string(v.blob[v.offsets[id]:v.offsets[id+1]]) == string(token) {
			return id, true
		}
	}
	if v.aliases != nil {
		id, ok := v.aliases[string(token)]
		return id, ok
	}
	return 0, false
}

// Bytes is the memory of the table.
func (v *Table) Bytes() int64 {
	n := int64(cap(v.blob)) + 4*int64(cap(v.offsets)) + 8*int64(len(v.missing)) + 4*int64(len(v.table))
	for s := range v.aliases {
		n += int64(len(s)) + 48
	}
	return n
}

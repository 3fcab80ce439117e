// Package vocab maps token ids to their text and back in little memory: one slice holds the text of
// all tokens, and an open-addressing table of ids finds them, so there is no Go string or map entry
// for each token.
package vocab

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Merge joins two neighbouring tokens into Result.
type Merge struct{ Left, Right, Result uint32 }

// Table is an immutable vocabulary.
type Table struct {
	blob    []byte
	offsets []uint32 // id -> start in blob; one more than there are ids
	missing []uint64 // bit set: the id has no token (nil: all have)
	slots   []uint32 // id + 1, and above it bits of the hash, which save most comparisons; 0 is free; nil in a list

	again, first uint32 // equal tokens, if again > first
}

const idBits = 25 // bits of a slot

// New builds a table of tokens. The index is the id; nil is an unused id. Of equal tokens ID finds
// the last.
func New(tokens [][]byte) *Table {
	v := NewList(tokens)
	v.index()
	return v
}

// NewList builds a table in which no token is looked up by its text: ID and Twice find nothing.
func NewList(tokens [][]byte) *Table {
	total := 0
	for _, t := range tokens {
		total += len(t)
	}
	v := &Table{blob: make([]byte, 0, total), offsets: make([]uint32, 1, len(tokens)+1)}
	for id, t := range tokens {
		v.blob = append(v.blob, t...)
		v.offsets = append(v.offsets, uint32(len(v.blob)))
		if t == nil {
			if v.missing == nil {
				v.missing = make([]uint64, (len(tokens)+63)/64)
			}
			v.missing[id/64] |= 1 << (id % 64)
		}
	}
	return v
}

// FromBlob builds a table of the tokens that blob concatenates: token id ends at offsets[id+1], and
// offsets[0] is 0. It keeps both slices.
func FromBlob(blob []byte, offsets []uint32) *Table {
	v := &Table{blob: blob, offsets: offsets}
	v.index()
	return v
}

// index fills the table of slots.
func (v *Table) index() {
	v.slots = make([]uint32, 1<<bits.Len(uint(2*v.Len())))
	mask := uint64(len(v.slots) - 1)
	for id := range uint32(v.Len()) {
		t, ok := v.Token(id)
		if !ok {
			continue
		}
		h := hash(t)
		tag := uint32(h>>32) >> idBits << idBits
		i := h & mask
		for ; v.slots[i] != 0; i = (i + 1) & mask {
			if other := v.slots[i] ^ tag; other < 1<<idBits && string(v.text(other-1)) == string(t) {
				if v.again == 0 {
					v.first, v.again = other-1, id
				}
				break
			}
		}
		v.slots[i] = tag | (id + 1)
	}
}

// Twice returns two ids with the same text; ok is false if all texts differ.
func (v *Table) Twice() (first, again uint32, ok bool) { return v.first, v.again, v.again > 0 }

// hash mixes every byte; the last word overlaps the previous one.
func hash(b []byte) uint64 {
	n := len(b)
	h := uint64(n) * 0x9E3779B97F4A7C15
	switch {
	case n >= 8:
		for i := 0; i < n-8; i += 8 {
			h = mix(h ^ binary.LittleEndian.Uint64(b[i:]))
		}
		return mix(h ^ binary.LittleEndian.Uint64(b[n-8:]))
	case n >= 4:
		return mix(h ^ (uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32))
	case n > 0:
		return mix(h ^ (uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16))
	}
	return mix(h)
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x2D358DCCAA6C78A5, 0x8BB84B93962EACC9)
	return hi ^ lo
}

// Len returns the largest id plus one.
func (v *Table) Len() int { return len(v.offsets) - 1 }

func (v *Table) text(id uint32) []byte { return v.blob[v.offsets[id]:v.offsets[id+1]] }

// Token returns the text of an id; ok is false if it has none. The caller must not change it.
func (v *Table) Token(id uint32) (text []byte, ok bool) {
	if int64(id) >= int64(v.Len()) || v.missing != nil && v.missing[id/64]&(1<<(id%64)) != 0 {
		return nil, false
	}
	return v.blob[v.offsets[id]:v.offsets[id+1]:v.offsets[id+1]], true
}

// AppendTokens appends the texts of ids to dst, nothing for those that have none. It may write after the
// result, within dst's capacity.
func (v *Table) AppendTokens(dst []byte, ids []uint32) []byte {
	const block = 16 // most tokens are shorter: a copy of fixed length costs a fraction of one that is not
	offsets, blob := v.offsets, v.blob
	for _, id := range ids {
		if int64(id)+1 >= int64(len(offsets)) {
			continue
		}
		start, end := int(offsets[id]), int(offsets[id+1]) // equal for a missing one
		if at := len(dst); end-start <= block && start+block <= len(blob) && at+block <= cap(dst) {
			*(*[block]byte)(dst[at : at+block]) = *(*[block]byte)(blob[start:])
			dst = dst[:at+end-start]
		} else {
			dst = append(dst, blob[start:end]...)
		}
	}
	return dst
}

// Tokens lists all tokens by id, nil for unused ids. The caller must not change their bytes.
func (v *Table) Tokens() [][]byte {
	list := make([][]byte, v.Len())
	for id := range list {
		list[id], _ = v.Token(uint32(id))
	}
	return list
}

// ID returns the id of a token.
func (v *Table) ID(token []byte) (uint32, bool) {
	if v.slots == nil {
		return 0, false
	}
	h := hash(token)
	tag := uint32(h>>32) >> idBits << idBits
	mask := uint64(len(v.slots) - 1)
	for i := h & mask; v.slots[i] != 0; i = (i + 1) & mask {
		if slot := v.slots[i] ^ tag; slot < 1<<idBits && string(v.text(slot-1)) == string(token) {
			return slot - 1, true
		}
	}
	return 0, false
}

// ByteIDs returns the ids of the tokens <0x00> to <0xFF>, -1 for those that there are not.
func (v *Table) ByteIDs() (ids [256]int32) {
	for b := range ids {
		ids[b] = -1
		if id, ok := v.ID(fmt.Appendf(nil, "<0x%02X>", b)); ok {
			ids[b] = int32(id)
		}
	}
	return ids
}

// TextBytes returns the total length of all tokens in bytes.
func (v *Table) TextBytes() int64 { return int64(len(v.blob)) }

// Bytes returns the memory of the table.
func (v *Table) Bytes() int64 {
	return int64(cap(v.blob)) + 4*int64(cap(v.offsets)) + 8*int64(len(v.missing)) + 4*int64(len(v.slots))
}

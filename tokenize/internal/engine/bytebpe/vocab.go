package bytebpe

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// vocab finds the id of a token by its bytes. The bytes of all tokens lie in one slice.
type vocab struct {
	data  []byte
	ends  []uint32 // ends[id] is where the token's bytes end; they begin where the previous token's end
	index []uint32 // tag<<idBits | id+1, or 0; nil if tokens are never looked up
}

// hashBytes hashes b. It is for tables in memory whose users compare the bytes too.
func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * mulLo
	for len(b) > 8 {
		h = bits.RotateLeft64((h^binary.LittleEndian.Uint64(b))*mulHi, 29)
		b = b[8:]
	}
	var tail uint64
	switch n := len(b); {
	case n >= 4:
		tail = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		tail = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	h = (h ^ tail) * mulLo
	return h ^ h>>29
}

// newVocab joins the tokens. indexed prepares find; then no two tokens may be equal.
func newVocab(tokens [][]byte, indexed bool) (*vocab, error) {
	total := 0
	for _, t := range tokens {
		total += len(t)
	}
	if int64(total) >= 1<<32 {
		return nil, configError("tokens of %d bytes together", total)
	}
	v := &vocab{data: make([]byte, 0, total), ends: make([]uint32, len(tokens))}
	for id, t := range tokens {
		v.data = append(v.data, t...)
		v.ends[id] = uint32(len(v.data))
	}
	if !indexed {
		return v, nil
	}
	v.index = make([]uint32, 1<<bits.Len(uint(len(tokens)*3/2+8)))
	for id, t := range tokens {
		if t == nil {
			continue
		}
		slot, tag := v.slot(t)
		if *slot != 0 {
			return nil, configError("tokens %d and %d are equal", *slot&idMask-1, id)
		}
		*slot = tag | uint32(id+1)
	}
	return v, nil
}

// slot returns the slot where the id of b is or belongs, and the tag stored above the id. The tag
// comes from the hash and saves nearly all comparisons with other tokens.
func (v *vocab) slot(b []byte) (slot *uint32, tag uint32) {
	h := hashBytes(b)
	tag = uint32(h>>32) &^ idMask
	mask := uint64(len(v.index) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot = &v.index[i]
		if *slot == 0 || *slot&^idMask == tag && bytes.Equal(v.token(*slot&idMask-1), b) {
			return slot, tag
		}
	}
}

func (v *vocab) token(id uint32) []byte {
	begin := uint32(0)
	if id > 0 {
		begin = v.ends[id-1]
	}
	return v.data[begin:v.ends[id]]
}

// find returns the id whose bytes are b, or noSymbol.
func (v *vocab) find(b []byte) uint32 {
	slot, _ := v.slot(b)
	return (*slot&idMask - 1) & idMask
}

func (v *vocab) bytes() int64 { return int64(len(v.data) + 4*len(v.ends) + 4*len(v.index)) }

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
	index []uint32 // id+1, or 0
}

// hashBytes mixes every byte; it is for tables inside one process, whose users compare the bytes themselves.
func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * mulLo
	for len(b) > 8 {
		h = bits.RotateLeft64((h^binary.LittleEndian.Uint64(b))*mulHi, 29)
		b = b[8:]
	}
	var tail uint64
	for i, c := range b {
		tail |= uint64(c) << (8 * i)
	}
	h = (h ^ tail) * mulLo
	return h ^ h>>29
}

func newVocab(tokens [][]byte) (*vocab, error) {
	total := 0
	for _, t := range tokens {
		total += len(t)
	}
	if int64(total) >= 1<<32 {
		return nil, configError("tokens of %d bytes together", total)
	}
	v := &vocab{data: make([]byte, 0, total), ends: make([]uint32, len(tokens)), index: make([]uint32, 1<<bits.Len(uint(len(tokens)*3/2+8)))}
	mask := uint64(len(v.index) - 1)
	for id, t := range tokens {
		v.data = append(v.data, t...)
		v.ends[id] = uint32(len(v.data))
		if t == nil {
			continue
		}
		i := hashBytes(t) & mask
		for ; v.index[i] != 0; i = (i + 1) & mask {
			if other := v.index[i] - 1; bytes.Equal(v.token(other), t) {
				return nil, configError("tokens %d and %d are equal", other, id)
			}
		}
		v.index[i] = uint32(id) + 1
	}
	return v, nil
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
	mask := uint64(len(v.index) - 1)
	for i := hashBytes(b) & mask; v.index[i] != 0; i = (i + 1) & mask {
		if id := v.index[i] - 1; bytes.Equal(v.token(id), b) {
			return id
		}
	}
	return noSymbol
}

func (v *vocab) bytes() int64 { return int64(len(v.data) + 4*len(v.ends) + 4*len(v.index)) }

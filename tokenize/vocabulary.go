package tokenize

import "unsafe"

// vocabulary maps ids to the text of their tokens and back. The text of the model's tokens lies in one blob; the way
// back is an open-addressing table of ids, so that no Go string or map entry is held for each token.
//
// Added tokens are few and take precedence both ways.
type vocabulary struct {
	blob    []byte
	offsets []uint32 // id -> start in blob; len = number of ids + 1
	missing []uint64 // bit set: the id has no token (nil: all have)
	table   []uint32 // hash -> id + 1
	added   map[string]uint32
	addedR  map[uint32]string
	numIDs  int
}

// newVocabulary builds the maps; tokens[id] is nil where an id is not used.
func newVocabulary(tokens [][]byte) *vocabulary {
	total := 0
	for _, t := range tokens {
		total += len(t)
	}
	v := &vocabulary{
		blob:    make([]byte, 0, total),
		offsets: make([]uint32, 0, len(tokens)+1),
		numIDs:  len(tokens),
		added:   map[string]uint32{},
		addedR:  map[uint32]string{},
	}
	size := 1
	for size < 2*len(tokens) {
		size *= 2
	}
	v.table = make([]uint32, size)
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
		for i := hashBytes(t) & uint32(size-1); ; i = (i + 1) & uint32(size-1) {
			if v.table[i] == 0 {
				v.table[i] = uint32(id) + 1
				break
			}
		}
	}
	v.offsets = append(v.offsets, uint32(len(v.blob)))
	return v
}

func hashBytes(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h ^ h>>15
}

func (v *vocabulary) add(token string, id uint32) {
	v.added[token] = id
	v.addedR[id] = token
	if int(id) >= v.numIDs {
		v.numIDs = int(id) + 1
	}
}

func (v *vocabulary) size() int { return v.numIDs }

// model gives the model's own token of an id.
func (v *vocabulary) model(id uint32) ([]byte, bool) {
	if int(id) >= len(v.offsets)-1 || v.missing != nil && v.missing[id/64]&(1<<(id%64)) != 0 {
		return nil, false
	}
	return v.blob[v.offsets[id]:v.offsets[id+1]], true
}

func (v *vocabulary) token(id uint32) (string, bool) {
	if s, ok := v.addedR[id]; ok {
		return s, true
	}
	b, ok := v.model(id)
	return string(b), ok
}

func (v *vocabulary) modelID(token []byte) (uint32, bool) {
	mask := uint32(len(v.table) - 1)
	for i := hashBytes(token) & mask; v.table[i] != 0; i = (i + 1) & mask {
		id := v.table[i] - 1
		if string(v.blob[v.offsets[id]:v.offsets[id+1]]) == string(token) {
			return id, true
		}
	}
	return 0, false
}

func (v *vocabulary) id(token string) (uint32, bool) {
	if id, ok := v.added[token]; ok {
		return id, true
	}
	return v.modelID([]byte(token))
}

func (v *vocabulary) bytes() int64 {
	n := int64(len(v.blob) + 4*len(v.offsets) + 8*len(v.missing) + 4*len(v.table))
	for s := range v.added {
		n += int64(2*len(s)) + 4*int64(unsafe.Sizeof(""))
	}
	return n
}

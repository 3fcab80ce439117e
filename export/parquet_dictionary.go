package export

import (
	"encoding/binary"
	"slices"
)

// An idDictionary numbers the different ids of a column of a row group, in the order in which they
// come, so that pages hold 2 bytes an id in place of parquet's 4, and the frequent ids have the low
// numbers: zstd takes a quarter of the time for smaller files. Where there are too many, pages are
// plain.
type idDictionary struct {
	numbers []uint16 // by id, counted from 1; 0 for one that has none
	ids     []uint32 // the id of each number
}

const (
	indexBits       = 16
	maxDictionary   = 1<<indexBits - 1
	maxDictionaryID = 1 << 20 // greater ones are of no vocabulary
)

// appendIndexes appends the ids of a page as a bit width and one bit-packed run. It returns false if
// they do not fit the dictionary.
func (d *idDictionary) appendIndexes(dst, raw []byte, width int) ([]byte, bool) {
	n := len(raw) / width
	if n == 0 {
		return dst, false
	}
	eights := (n + 7) / 8 // what the length of such a run is given in
	dst = binary.AppendUvarint(append(dst, indexBits), uint64(eights)<<1|1)
	begin, size := len(dst), eights*indexBits
	dst = slices.Grow(dst, size)[:begin+size]
	out := dst[begin:]
	clear(out[2*n:])
	for i := range n {
		id := idAt(raw, i, width)
		if int(id) >= len(d.numbers) || d.numbers[id] == 0 {
			if !d.add(id) {
				return dst, false
			}
		}
		binary.LittleEndian.PutUint16(out[2*i:], d.numbers[id]-1)
	}
	return dst, true
}

// add gives an id the next number, if there is one.
func (d *idDictionary) add(id uint32) bool {
	if len(d.ids) == maxDictionary || id >= maxDictionaryID {
		return false
	}
	if more := int(id) + 1 - len(d.numbers); more > 0 {
		d.numbers = append(d.numbers, make([]uint16, more)...)
	}
	d.ids = append(d.ids, id)
	d.numbers[id] = uint16(len(d.ids))
	return true
}

func (d *idDictionary) reset() {
	for _, id := range d.ids {
		d.numbers[id] = 0
	}
	d.ids = d.ids[:0]
}

func idAt(raw []byte, i, width int) uint32 {
	if width == 2 {
		return uint32(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	return binary.LittleEndian.Uint32(raw[4*i:])
}

// appendWide appends ids as most formats have them, of 4 bytes.
func appendWide(dst, raw []byte, width int) []byte {
	if width == 4 {
		return append(dst, raw...)
	}
	for i := 0; i < len(raw); i += 2 {
		dst = append(dst, raw[i], raw[i+1], 0, 0)
	}
	return dst
}

package columnar

import (
	"encoding/binary"
)

// Encodings by their numbers in the format.
const (
	encodingPlain      = 0
	encodingDictionary = 2 // the older name of rleDictionary
	encodingRLE        = 3
	encodingBitPacked  = 4
	encodingDelta      = 5
	encodingLengths    = 6
	encodingPrefixes   = 7
	encodingDictRLE    = 8
	encodingSplit      = 9
)

// values decodes the values of one page.
type values struct {
	kind     physical
	width    int // bytes of a value of fixed width, 0 for others
	encoding int32
	data     []byte
	n        int // values that are there, for encodingSplit
	at       int
	bit      uint

	dict    *dictionary
	indices hybrid
	deltas  delta // numbers, lengths of values or of suffixes
	shared  delta // lengths of prefixes
	last    []byte
	number  [8]byte
	limit   int // longest value made of prefixes
}

// A dictionary is the values that pages refer to.
type dictionary struct {
	data  []byte
	ends  []uint32 // where values of various widths end, their lengths left out
	width int
	n     int
}

func (d *dictionary) value(i uint32) ([]byte, error) {
	if int64(i) >= int64(d.n) {
		return nil, corrupt("a value lies outside the dictionary")
	}
	if d.width > 0 {
		return d.data[int(i)*d.width:][:d.width], nil
	}
	start := uint32(0)
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.data[start+4 : d.ends[i]], nil
}

func widthOf(n *node) int {
	switch n.kind {
	case typeInt32, typeFloat:
		return 4
	case typeInt64, typeDouble:
		return 8
	case typeInt96:
		return 12
	case typeFixed:
		return n.width
	}
	return 0
}

// begin makes the decoder read a page's values, of which there are n.
func (v *values) begin(leaf *node, encoding int32, data []byte, n int, dict *dictionary) (err error) {
	*v = values{kind: leaf.kind, width: widthOf(leaf), encoding: encoding, data: data, n: n, dict: dict,
		last: v.last[:0], limit: v.limit}
	switch encoding {
	case encodingPlain:
		return nil
	case encodingDictionary, encodingDictRLE:
		if dict == nil {
			return corrupt("missing dictionary")
		}
		return v.beginIndices(data)
	case encodingRLE:
		if leaf.kind != typeBoolean || len(data) < 4 {
			break
		}
		size := binary.LittleEndian.Uint32(data)
		if uint64(size) > uint64(len(data)-4) {
			return corrupt("boolean page is cut off")
		}
		v.indices = hybrid{data: data[4 : 4+size], width: 1}
		return nil
	case encodingDelta:
		if leaf.kind == typeInt32 || leaf.kind == typeInt64 {
			v.deltas, err = newDelta(data)
			return err
		}
	case encodingLengths:
		if leaf.kind == typeByteArray {
			return v.beginLengths(data)
		}
	case encodingPrefixes:
		if leaf.kind == typeByteArray || leaf.kind == typeFixed {
			if v.shared, err = newDelta(data); err != nil {
				return err
			}
			if data, err = v.shared.rest(); err != nil {
				return err
			}
			return v.beginLengths(data)
		}
	case encodingSplit:
		if v.width > 0 {
			if len(data) != n*v.width {
				return corrupt("page has %d values, its header says %d", len(data)/v.width, n)
			}
			return nil
		}
	}
	return unsupported("column %s has pages of encoding %d for its type", leaf.path, encoding)
}

// beginIndices begins to read numbers of values in the dictionary.
func (v *values) beginIndices(data []byte) error {
	v.encoding = encodingDictRLE
	if len(data) == 0 {
		if v.n > 0 {
			return corrupt(shortPage)
		}
		return nil
	}
	if data[0] > 32 {
		return corrupt("a page refers to its dictionary by numbers of more than 32 bits")
	}
	v.indices = hybrid{data: data[1:], width: uint(data[0])}
	return nil
}

func (v *values) beginLengths(data []byte) (err error) {
	if v.deltas, err = newDelta(data); err != nil {
		return err
	}
	v.data, err = v.deltas.rest()
	return err
}

// next returns the next value; it is valid until the following call.
func (v *values) next() ([]byte, error) {
	switch v.encoding {
	case encodingPlain:
		return v.plain()
	case encodingDictRLE:
		i, err := v.indices.next()
		if err != nil {
			return nil, err
		}
		return v.dict.value(i)
	case encodingRLE:
		b, err := v.indices.next()
		v.number[0] = byte(b)
		return v.number[:1], err
	case encodingDelta:
		n, err := v.deltas.next()
		binary.LittleEndian.PutUint64(v.number[:], uint64(n))
		return v.number[:v.width], err
	case encodingLengths:
		return v.take()
	case encodingPrefixes:
		return v.joined()
	}
	if v.at >= v.n {
		return nil, corrupt(shortPage)
	}
	if cap(v.last) < v.width {
		v.last = make([]byte, v.width)
	}
	v.last = v.last[:v.width]
	for i := range v.width {
		v.last[i] = v.data[i*v.n+v.at]
	}
	v.at++
	return v.last, nil
}

func (v *values) plain() ([]byte, error) {
	n := v.width
	switch {
	case v.kind == typeBoolean:
		if len(v.data) == 0 {
			return nil, corrupt(shortPage)
		}
		v.number[0] = v.data[0] >> v.bit & 1
		if v.bit++; v.bit == 8 {
			v.bit, v.data = 0, v.data[1:]
		}
		return v.number[:1], nil
	case n == 0:
		if len(v.data) < 4 {
			return nil, corrupt(shortPage)
		}
		size := binary.LittleEndian.Uint32(v.data)
		if v.data = v.data[4:]; uint64(size) > uint64(len(v.data)) {
			return nil, corrupt("a value is longer than its page")
		}
		n = int(size)
	}
	if n > len(v.data) {
		return nil, corrupt(shortPage)
	}
	out := v.data[:n]
	v.data = v.data[n:]
	return out, nil
}

// take returns a value whose length is a delta.
func (v *values) take() ([]byte, error) {
	n, err := v.deltas.next()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(v.data)) {
		return nil, corrupt("a value is longer than its page")
	}
	out := v.data[:n]
	v.data = v.data[n:]
	return out, nil
}

// joined returns a value that begins as the last one does.
func (v *values) joined() ([]byte, error) {
	prefix, err := v.shared.next()
	if err != nil {
		return nil, err
	}
	suffix, err := v.take()
	if err != nil {
		return nil, err
	}
	if prefix < 0 || prefix > int64(len(v.last)) {
		return nil, corrupt("shared prefix is longer than the previous value")
	}
	if int(prefix)+len(suffix) > v.limit {
		return nil, &SizeError{"a value", prefix + int64(len(suffix))}
	}
	v.last = append(v.last[:prefix], suffix...)
	if v.width > 0 && len(v.last) != v.width {
		return nil, corrupt("value is %d bytes, the column's are %d", len(v.last), v.width)
	}
	return v.last, nil
}

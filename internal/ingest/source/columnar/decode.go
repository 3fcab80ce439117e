package columnar

import (
	"encoding/binary"
	"math/bits"
)

// Values of a page are decoded one at a time from its bytes: no encoding is ever unpacked as a whole.

// hybrid decodes runs and bit-packed groups of numbers, parquet's RLE encoding.
type hybrid struct {
	data  []byte
	width uint
	run   uint64 // values left of a run
	value uint32
	bits  []byte // of the packed values that are left
	bit   uint   // of bits[0] that is next
	left  uint64
}

func newHybrid(data []byte, width uint) hybrid { return hybrid{data: data, width: width} }

func (h *hybrid) next() (uint32, error) {
	for h.run == 0 && h.left == 0 {
		head, n := binary.Uvarint(h.data)
		if n <= 0 {
			return 0, corrupt("a page has fewer values than its header says")
		}
		h.data = h.data[n:]
		if head&1 == 0 {
			size := int(h.width+7) / 8
			if size > len(h.data) || head>>1 == 0 {
				return 0, corrupt("a run of values ends early")
			}
			var b [4]byte
			copy(b[:], h.data[:size])
			h.run, h.value, h.data = head>>1, binary.LittleEndian.Uint32(b[:]), h.data[size:]
			continue
		}
		groups := head >> 1
		size := groups * uint64(h.width)
		if groups == 0 || groups > uint64(len(h.data))+1<<20 {
			return 0, corrupt("a run of values ends early")
		}
		if size > uint64(len(h.data)) { // the last group may be cut off
			size = uint64(len(h.data))
		}
		h.bits, h.bit, h.left = h.data[:size], 0, groups*8
		h.data = h.data[size:]
	}
	if h.run > 0 {
		h.run--
		return h.value, nil
	}
	h.left--
	v, n := uint64(0), (h.bit+h.width+7)/8
	if int(n) > len(h.bits) {
		return 0, corrupt("a page has fewer values than its header says")
	}
	for i := range n {
		v |= uint64(h.bits[i]) << (8 * i)
	}
	v = v >> h.bit & (1<<h.width - 1)
	h.bit += h.width
	h.bits, h.bit = h.bits[h.bit/8:], h.bit%8
	return uint32(v), nil
}

// delta decodes DELTA_BINARY_PACKED numbers.
type delta struct {
	data      []byte
	blockSize uint64
	minis     uint64
	left      uint64 // values of the page
	first     bool
	value     int64
	minDelta  int64
	widths    []byte
	mini      []byte // bits of the current miniblock
	width     uint
	bit       uint
	inMini    uint64
}

const maxDeltaBlock = 1 << 20

func newDelta(data []byte) (d delta, err error) {
	number := func() uint64 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			err = corrupt("a page of deltas has no header")
			return 0
		}
		data = data[n:]
		return v
	}
	d.blockSize, d.minis, d.left = number(), number(), number()
	first := number()
	d.value, d.first, d.data = int64(first>>1)^-int64(first&1), true, data
	if err == nil && (d.blockSize == 0 || d.blockSize > maxDeltaBlock || d.minis == 0 || d.blockSize%d.minis != 0 ||
		d.blockSize/d.minis%8 != 0) {
		err = corrupt("a page of deltas has blocks of an impossible size")
	}
	return d, err
}

func (d *delta) next() (int64, error) {
	if d.left == 0 {
		return 0, corrupt("a page has fewer values than its header says")
	}
	d.left--
	if d.first {
		d.first = false
		return d.value, nil
	}
	if d.inMini == 0 {
		if err := d.advance(); err != nil {
			return 0, err
		}
	}
	d.inMini--
	var v uint64
	if d.width > 0 {
		n := (d.bit + d.width + 7) / 8
		var high uint64
		for i := range min(n, 8) {
			v |= uint64(d.mini[i]) << (8 * i)
		}
		if n > 8 {
			high = uint64(d.mini[8])
		}
		v = v>>d.bit | high<<(64-d.bit)&-boolBits(d.bit > 0)
		if d.width < 64 {
			v &= 1<<d.width - 1
		}
		d.bit += d.width
		d.mini, d.bit = d.mini[d.bit/8:], d.bit%8
	}
	d.value += d.minDelta + int64(v)
	return d.value, nil
}

func boolBits(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// advance goes to the next miniblock.
func (d *delta) advance() error {
	if len(d.widths) == 0 {
		v, n := binary.Uvarint(d.data)
		if n <= 0 || uint64(len(d.data)-n) < d.minis {
			return corrupt("a page of deltas ends early")
		}
		d.minDelta = int64(v>>1) ^ -int64(v&1)
		d.widths = d.data[n : n+int(d.minis)]
		d.data = d.data[n+int(d.minis):]
	}
	d.width, d.widths = uint(d.widths[0]), d.widths[1:]
	values := d.blockSize / d.minis
	size := values / 8 * uint64(d.width)
	if d.width > 64 {
		return corrupt("a page of deltas has numbers of more than 64 bits")
	}
	if size > uint64(len(d.data)) {
		return corrupt("a page of deltas ends early")
	}
	d.mini, d.bit, d.inMini = d.data[:size], 0, values
	d.data = d.data[size:]
	return nil
}

// rest skips all values and returns what follows them.
func (d delta) rest() ([]byte, error) {
	for d.left > 0 {
		if d.first {
			d.first = false
			d.left--
			continue
		}
		if err := d.advance(); err != nil {
			return nil, err
		}
		d.left -= min(d.left, d.inMini)
		d.inMini = 0
	}
	return d.data, nil
}

// levelBits returns how many bits levels up to max take.
func levelBits(max int) uint { return uint(bits.Len(uint(max))) }

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
	ends  []uint32 // of values of various widths, without their lengths
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
			return corrupt("a page refers to a dictionary that is not there")
		}
		return v.beginIndices(data)
	case encodingRLE:
		if leaf.kind != typeBoolean || len(data) < 4 {
			break
		}
		size := binary.LittleEndian.Uint32(data)
		if uint64(size) > uint64(len(data)-4) {
			return corrupt("a page of truth values ends early")
		}
		v.indices = newHybrid(data[4:4+size], 1)
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
				return corrupt("a page has another number of values than its header says")
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
			return corrupt("a page has fewer values than its header says")
		}
		return nil
	}
	if data[0] > 32 {
		return corrupt("a page refers to its dictionary by numbers of more than 32 bits")
	}
	v.indices = newHybrid(data[1:], uint(data[0]))
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
		return nil, corrupt("a page has fewer values than its header says")
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
			return nil, corrupt("a page has fewer values than its header says")
		}
		v.number[0] = v.data[0] >> v.bit & 1
		if v.bit++; v.bit == 8 {
			v.bit, v.data = 0, v.data[1:]
		}
		return v.number[:1], nil
	case n == 0:
		if len(v.data) < 4 {
			return nil, corrupt("a page has fewer values than its header says")
		}
		size := binary.LittleEndian.Uint32(v.data)
		if v.data = v.data[4:]; uint64(size) > uint64(len(v.data)) {
			return nil, corrupt("a value is longer than its page")
		}
		n = int(size)
	}
	if n > len(v.data) {
		return nil, corrupt("a page has fewer values than its header says")
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
		return nil, corrupt("a value begins like more than there is")
	}
	if int(prefix)+len(suffix) > v.limit {
		return nil, &SizeError{"a value", prefix + int64(len(suffix))}
	}
	v.last = append(v.last[:prefix], suffix...)
	if v.width > 0 && len(v.last) != v.width {
		return nil, corrupt("a value has another width than its column")
	}
	return v.last, nil
}

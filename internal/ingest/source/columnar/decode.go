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
	bits  []byte // the packed values that are left
	bit   uint   // the next one of bits[0]
	left  uint64
}

func (h *hybrid) next() (uint32, error) {
	for h.run == 0 && h.left == 0 {
		head, n := binary.Uvarint(h.data)
		if n <= 0 {
			return 0, corrupt(shortPage)
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
		return 0, corrupt(shortPage)
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
		return 0, corrupt(shortPage)
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
		v = v>>d.bit | high<<(64-d.bit)
		if d.width < 64 {
			v &= 1<<d.width - 1
		}
		d.bit += d.width
		d.mini, d.bit = d.mini[d.bit/8:], d.bit%8
	}
	d.value += d.minDelta + int64(v)
	return d.value, nil
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

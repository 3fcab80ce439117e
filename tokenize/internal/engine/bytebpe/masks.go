package bytebpe

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// Windows. Text is scanned in windows of at most windowBytes, copied next to padding so that no
// load leaves the buffer.
const (
	windowBytes = 4096
	blockBytes  = 64
	numBlocks   = windowBytes / blockBytes
	padBytes    = 2 * blockBytes
)

// block holds a bit per byte for 64 bytes of text, in each mask. All bytes of a character carry its
// classes; cont marks its bytes after the first.
type block struct {
	letter, number, space uint64
	blank                 uint64 // 0x20
	newline               uint64 // \r \n
	quote                 uint64 // '
	cont                  uint64
	high                  uint64 // bytes from 0x80
	upper, lower, mark    uint64
	slash                 uint64
	nul                   uint64
	_                     [3]uint64
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// push shifts eight more bits into a mask from the top: the top bits of the bytes of x, whose other
// bits are zero.
func push(mask, x uint64) uint64 { return mask>>8 | x>>7*0x0102040810204080&(0xff<<56) }

// between sets the top bit of each byte of x in lo..hi; all bytes are below 0x80. The other bits of
// the result are meaningless.
func between(x uint64, lo, hi byte) uint64 {
	return (x + uint64(0x80-lo)*ones) ^ (x + uint64(0x7f-hi)*ones)
}

// asSlots is a block as an array of masks, for the rare classes. asciiSlot maps an ASCII character
// other than a letter, number or blank to its mask; the slot after the masks takes characters
// without one.
type asSlots [unsafe.Sizeof(block{}) / 8]uint64

const noSlot = (unsafe.Offsetof(block{}.nul) + 8) / 8

var asciiSlot = func() (t [128]uint8) {
	for i := range t {
		t[i] = uint8(noSlot)
	}
	t['\t'], t['\v'], t['\f'] = uint8(unsafe.Offsetof(block{}.space)/8), uint8(unsafe.Offsetof(block{}.space)/8),
		uint8(unsafe.Offsetof(block{}.space)/8)
	t['\n'], t['\r'] = uint8(unsafe.Offsetof(block{}.newline)/8), uint8(unsafe.Offsetof(block{}.newline)/8)
	t['\''] = uint8(unsafe.Offsetof(block{}.quote) / 8)
	t['/'] = uint8(unsafe.Offsetof(block{}.slash) / 8)
	t[0] = uint8(unsafe.Offsetof(block{}.nul) / 8)
	return t
}()

// classifyGo fills the masks of ASCII bytes; bytes from 0x80 are in high only, and in cont if they
// look like continuation bytes. The results are the unions of the blocks' high and nul. Frequent
// classes are found for eight bytes at once without branches, the rare ones a byte at a time.
func classifyGo(buf []byte, out []block) (high, nul uint64) {
	for k := range out {
		text := (*[blockBytes]byte)(buf[k*blockBytes:])
		b := &out[k]
		*b = block{}
		var letters, caps, numbers, blanks, any uint64
		for i := 0; i < blockBytes; i += 8 {
			x := binary.LittleEndian.Uint64(text[i&63:])
			any |= x
			ascii := ^x & highs
			x &^= highs
			l := between(x|0x20*ones, 'a', 'z') & ascii
			letters = push(letters, l)
			caps = push(caps, l&^(x<<2))
			numbers = push(numbers, between(x, '0', '9')&ascii)
			blanks = push(blanks, ascii&^((x^' '*ones)+0x7f*ones))
		}
		if any&highs != 0 {
			for i := 0; i < blockBytes; i += 8 {
				x := binary.LittleEndian.Uint64(text[i&63:])
				hi := x & highs
				b.high = push(b.high, hi)
				b.cont = push(b.cont, hi&^(x<<1))
			}
		}
		slots := (*asSlots)(unsafe.Pointer(b))
		for rest := ^(letters | numbers | blanks | b.high); rest != 0; rest &= rest - 1 {
			c := text[bits.TrailingZeros64(rest)&63]
			slots[asciiSlot[c&127]&15] |= rest & -rest
		}
		b.letter, b.number, b.blank = letters, numbers, blanks
		b.space |= blanks | b.newline
		b.upper, b.lower = caps, letters&^caps
		high |= b.high
		nul |= b.nul
	}
	return high, nul
}

// classifyHighGo adds the classes of characters beyond ASCII. buf ends where the window ends.
func (m *Model) classifyHighGo(buf []byte, blocks []block) {
	like := blocks[0].cont // bytes that look like continuation bytes
	blocks[0].cont = 0
	for k := range blocks {
		after := uint64(0)
		if k+1 < len(blocks) {
			after = blocks[k+1].cont
			blocks[k+1].cont = 0
		}
		first := blocks[k].high &^ like & (like>>1 | after<<63)
		like = after
		for ; first != 0; first &= first - 1 {
			p := k*blockBytes + bits.TrailingZeros64(first)
			if p >= len(buf) {
				return
			}
			r, n := utf8.DecodeRune(buf[p:])
			if n == 1 {
				continue
			}
			c := m.class(r)
			bit := uint64(1<<n - 1)
			setClasses(&blocks[k], c, bit<<(p&63), bit<<(p&63)&^(1<<(p&63)))
			if over := p&63 + n - 64; over > 0 {
				setClasses(&blocks[k+1], c, 1<<over-1, 1<<over-1)
			}
		}
	}
}

func setClasses(b *block, c uint8, all, cont uint64) {
	b.cont |= cont
	if c&letter != 0 {
		b.letter |= all
	}
	if c&number != 0 {
		b.number |= all
	}
	if c&space != 0 {
		b.space |= all
	}
	if c&upper != 0 {
		b.upper |= all
	}
	if c&lower != 0 {
		b.lower |= all
	}
	if c&mark != 0 {
		b.mark |= all
	}
}

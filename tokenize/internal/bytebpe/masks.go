package bytebpe

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Windows. Text is scanned in windows of at most windowBytes, copied next to padding so that no load leaves the buffer.
const (
	windowBytes = 4096
	blockBytes  = 64
	numBlocks   = windowBytes / blockBytes
	padBytes    = 2 * blockBytes
)

// block holds one bit a byte for 64 bytes of text. All bytes of a character carry its classes; cont marks its bytes after the first.
type block struct {
	letter, number, space uint64
	blank                 uint64 // 0x20
	newline               uint64 // \r \n
	quote                 uint64 // '
	cont                  uint64
	high                  uint64 // bytes from 0x80, whatever they are part of
	upper, lower, mark    uint64
	slash                 uint64
	nul                   uint64
	_                     [3]uint64
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// gather turns the top bit of each byte into eight bits.
func gather(x uint64) uint64 { return x >> 7 * 0x0102040810204080 >> 56 }

// equal sets the top bit of each byte, all below 0x80, that equals c.
func equal(x uint64, c byte) uint64 { return ^((x ^ uint64(c)*ones) + 0x7f*ones) & highs }

// between sets the top bit of each byte, all below 0x80, in lo..hi.
func between(x uint64, lo, hi byte) uint64 {
	return (x + uint64(0x80-lo)*ones) &^ (x + uint64(0x7f-hi)*ones) & highs
}

// classifyGo fills the masks of ASCII bytes; bytes from 0x80 are in high only, and in cont if they look like it. The results are the unions of the blocks' high and nul.
func classifyGo(buf []byte, out []block) (high, nul uint64) {
	for k := range out {
		text := (*[blockBytes]byte)(buf[k*blockBytes:])
		b := &out[k]
		*b = block{}
		for i := 0; i < 8; i++ {
			raw := binary.LittleEndian.Uint64(text[i*8:])
			s := uint(i * 8)
			x, ascii := raw, uint64(highs)
			if hi := raw & highs; hi != 0 {
				x, ascii = raw&^highs, ^hi&highs
				b.high |= gather(hi) << s
				b.cont |= gather(hi&^(raw<<1)) << s
			}
			l := between(x|0x20*ones, 'a', 'z') & ascii
			n := between(x, '0', '9') & ascii
			blank := equal(x, ' ') & ascii
			b.letter |= gather(l) << s
			b.upper |= gather(l&^(x<<2)) << s
			b.blank |= gather(blank) << s
			if n != 0 {
				b.number |= gather(n) << s
			}
			if ascii == l|n|blank {
				continue
			}
			b.space |= gather(between(x, '\t', '\r')&ascii) << s
			b.newline |= gather((equal(x, '\n')|equal(x, '\r'))&ascii) << s
			b.quote |= gather(equal(x, '\'')&ascii) << s
			b.nul |= gather(equal(x, 0)&ascii) << s
			b.slash |= gather(equal(x, '/')&ascii) << s
		}
		b.space |= b.blank
		b.lower = b.letter &^ b.upper
		high |= b.high
		nul |= b.nul
	}
	return high, nul
}

// classifyHighGo adds the classes of characters beyond ASCII. buf ends where the window ends.
func (m *Model) classifyHighGo(buf []byte, blocks []block) {
	done := 0 // characters before this were handled, perhaps from the block before
	for k := range blocks {
		blocks[k].cont = 0
	}
	for k := range blocks {
		for h := blocks[k].high; h != 0; {
			p := k*blockBytes + bits.TrailingZeros64(h)
			h &= h - 1
			if p < done || p >= len(buf) {
				continue
			}
			r, n := utf8.DecodeRune(buf[p:])
			done = p + n
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

package bytebpe

import "math/bits"

// The boundary rules as algebra on masks of 64 bytes. start gets a bit for each byte that begins a
// pre-token, as if the window were the whole text; the padding is blank, so white space at the end
// is never followed by anything else.
//
// A mask shifted left by one, with the top bit of the previous block, says what the previous byte
// is; shifted right by one, with the low bit of the next block, it says what the next byte is.

// boundsGPT2 cuts where the class changes. A blank belongs to what follows it; a run of white space
// loses its last character if something else follows; there is a cut after contractions.
func boundsGPT2(buf []byte, blocks []block, start []uint64) {
	var pl, pn, ps, pb, po uint64 // top bits of the previous block
	var set, clear uint64         // what a contraction in the block before changes here
	for k := range start {
		b := &blocks[k]
		l, n, s := b.letter, b.number, b.space
		o := ^(l | n | s)
		same := l&(l<<1|pl) | n&(n<<1|pn) | o&(o<<1|po)
		begin := ^s &^ same &^ (b.blank<<1 | pb)
		last := s &^ (s>>1 | blocks[k+1].space<<63)
		begin |= s&^(s<<1|ps) | last
		if last&b.cont != 0 {
			begin = moveToFirstByte(last&b.cont, k, blocks, start, begin)
		}
		begin = begin&^clear | set
		set, clear = 0, 0
		for q := begin & b.quote & (l>>1 | blocks[k+1].letter<<63); q != 0; q &= q - 1 {
			i := uint(bits.TrailingZeros64(q))
			if c := uint(contraction(buf, k*blockBytes+int(i), false)); c > 0 {
				begin = begin&^(2<<i) | 1<<(i+c)
				if i == 63 {
					clear = 1
				}
				if i+c > 63 {
					set |= 1 << (i + c - 64)
				}
			}
		}
		start[k] = begin
		pl, pn, ps, pb, po = l>>63, n>>63, s>>63, b.blank>>63, o>>63
	}
	start[0] |= 1
}

// moveToFirstByte moves boundaries from the last byte of a white-space character to its first.
func moveToFirstByte(wrong uint64, k int, blocks []block, start []uint64, begin uint64) uint64 {
	begin &^= wrong
	for ; wrong != 0; wrong &= wrong - 1 {
		p := k*blockBytes + bits.TrailingZeros64(wrong)
		for blocks[p/64].cont>>(p&63)&1 != 0 {
			p--
		}
		if p/64 == k {
			begin |= 1 << (p & 63)
		} else {
			start[p/64] |= 1 << (p & 63)
		}
	}
	return begin
}

// boundsCL100K handles cl100k and the patterns derived from it; see endCL100K and endO200K. ok is
// false for text that it leaves to the plain scanner: for o200k, rare sequences. It is one loop, in
// which what a block passes on to the next stays in local variables.
//
// For o200k, a mark is what a caseless letter is, except after several other characters or after
// one that follows a blank: those take it with them.
func boundsCL100K(buf []byte, blocks []block, start []uint64, split Split) (ok bool) {
	var pl, pn, pnn, po, pb, ps, pAttach, pAbsorbed, pNew, pThird uint64
	var set uint64
	var words casedWords
	if split == O200K {
		for k := range blocks {
			blocks[k].letter |= blocks[k].mark
		}
	}
	pending := -1 // a boundary after a newline, void if another newline follows in the same white space
	for k := range start {
		b := &blocks[k]
		l, n, cont := b.letter, b.number, b.cont
		o := ^(l | n | b.space)
		// Newlines right after other characters belong to them.
		absorbed := b.newline & (o<<1 | po | pAbsorbed)
		absorbed = b.newline &^ (b.newline + absorbed)
		s := b.space &^ absorbed
		sn := s &^ b.newline // white space that can stand before a word
		prevO := o<<1 | po

		// A single other character that follows no blank belongs to the letters after it.
		first := o &^ prevO
		alone := first &^ (b.blank<<1 | pb)
		whole := alone
		if cont != 0 {
			for range 3 {
				whole |= (whole<<1 | pAttach) & cont
			}
		}
		attached := whole<<1 | pAttach
		begin := alone | l&^(l<<1|pl)&^(sn<<1|ps)&^attached

		// Numbers.
		if split == Qwen2 {
			begin |= n &^ cont
		} else if n&cont != 0 {
			var t uint64
			t, pThird = thirds(n, cont, pn, pThird)
			begin |= t
		} else if n != 0 {
			t := n &^ (n<<1 | pn)
			inside := n & (n<<1 | pn) & (n<<2 | pnn)
			for g := (t<<3 | pThird) & inside; g != 0; g = g << 3 & inside {
				t |= g
			}
			begin |= t
			pThird = t >> 61
		} else {
			pThird = 0
		}

		// White space is cut at its beginning, after its last newline, and before its last
		// character if something else follows.
		next := blocks[k+1].space
		last := sn &^ (b.space>>1 | next<<63)
		after := sn & (s&b.newline<<1 | pNew)
		begin |= s&^(s<<1|ps|pNew) | after | last
		if last&cont != 0 {
			begin = moveToFirstByte(last&cont, k, blocks, start, begin)
		}
		if pending >= 0 {
			if e := uint(bits.TrailingZeros64(^sn)); e < 64 {
				if s&b.newline>>e&1 != 0 {
					start[pending/64] &^= 1 << (pending & 63)
				}
				pending = -1
			}
		}
		if after != 0 {
			ends := (after + sn) &^ sn
			for bad := ends & s & b.newline; bad != 0; bad &= bad - 1 {
				below := after & (bad&-bad - 1)
				if below != 0 {
					begin &^= 1 << (63 - bits.LeadingZeros64(below))
				}
			}
			if top := 63 - bits.LeadingZeros64(after); sn>>top == ^uint64(0)>>top {
				pending = k*blockBytes + top
			}
		}

		begin |= set
		set = 0
		if split == O200K {
			if b.mark&prevO&^attached != 0 || (absorbed<<1|pAbsorbed)&b.slash != 0 {
				return false
			}
			if begin, ok = words.cut(buf, blocks, k, begin); !ok {
				return false
			}
		}
		for q := alone & b.quote; split != O200K && q != 0; q &= q - 1 {
			i := uint(bits.TrailingZeros64(q))
			if c := uint(contraction(buf, k*blockBytes+int(i), true)); c > 0 {
				begin |= 1 << (i + c)
				if i+c > 63 {
					set |= 1 << (i + c - 64)
				}
			}
		}
		start[k] = begin
		pl, pn, pnn, po, pb = l>>63, n>>63, n>>62, o>>63, b.blank>>63
		ps, pAttach, pAbsorbed, pNew = sn>>63, whole>>63, absorbed>>63, s&b.newline>>63
	}
	start[0] |= 1
	return true
}

// thirds finds where numbers of up to three characters begin in a block with digits beyond ASCII.
// If the previous block ends inside a number, the highest bit of third says how many characters
// after its end the next number begins.
func thirds(n, cont, before, third uint64) (t, next uint64) {
	left := bits.Len64(third) - 1
	for rest := n &^ cont; rest != 0; rest &= rest - 1 {
		bit := rest & -rest
		if left == 0 || bit&(n<<1|before) == 0 {
			t |= bit
			left = 3
		}
		left--
	}
	if n>>63 != 0 {
		next = 1 << left
	}
	return t, next
}

// casedWords finds where the o200k pattern cuts inside letters, and joins contractions to the
// preceding words.
//
// A word is [upper or caseless]* then [lower or caseless]+, or else upper only. So it ends before
// an upper-case letter that follows a lower-case one, even with caseless letters between them.
// Upper-case letters that follow a caseless one and end the run of letters form their own word,
// since the pattern gives them back to match its second part.
type casedWords struct {
	tail     uint64 // the previous byte is past the lower-case letter that began the second part
	caseless uint64
	letter   uint64
	set      uint64 // boundaries after contractions that lie in this block
	clear    uint64 // boundaries inside such contractions
	end      int    // where the last contraction ended
}

func (c *casedWords) cut(buf []byte, blocks []block, k int, begin uint64) (_ uint64, ok bool) {
	b := &blocks[k]
	caseless := b.letter &^ (b.upper | b.lower)
	tail := b.lower | caseless&^(caseless+(b.lower<<1|c.tail)&caseless)
	split := b.upper & (tail<<1 | c.tail)
	for u := b.upper & (caseless<<1 | c.caseless) &^ split; u != 0; u &= u - 1 {
		if !letterAt(blocks, upperEnd(blocks, k*blockBytes+bits.TrailingZeros64(u))) {
			split |= u & -u
		}
	}
	begin = (begin|split)&^c.clear | c.set
	c.set, c.clear = 0, 0
	for q := b.quote & (b.letter<<1 | c.letter); q != 0; q &= q - 1 {
		i := bits.TrailingZeros64(q)
		p := k*blockBytes + i
		n := contraction(buf, p, true)
		if n == 0 || p == c.end && p > 0 {
			continue
		}
		c.end = p + n
		if buf[p+n] >= 0x80 {
			return begin, false // a caseless letter there would need the tail to begin anew
		}
		inside := uint64(1)<<n - 1 // the case of a contraction's letters cuts nothing
		begin = begin&^(inside<<i) | 1<<(i+n)
		if i+n > 63 {
			c.set |= 1 << (i + n - 64)
			c.clear |= inside >> (64 - i)
		}
	}
	c.tail, c.caseless, c.letter = tail>>63, caseless>>63, b.letter>>63
	return begin, true
}

// upperEnd returns the first position at or after p that is not upper case.
func upperEnd(blocks []block, p int) int {
	for k := p / blockBytes; k < len(blocks); k++ {
		if rest := ^blocks[k].upper >> (p & 63); rest != 0 {
			return p + bits.TrailingZeros64(rest)
		}
		p = (k + 1) * blockBytes
	}
	return p
}

func letterAt(blocks []block, p int) bool {
	return p/blockBytes < len(blocks) && blocks[p/blockBytes].letter>>(p&63)&1 != 0
}

// positions holds where the words of a window begin; the kernel that fills it writes past the last
// one.
type positions [windowBytes + 72]uint16

// flattenGo writes the positions of the set bits below n, followed by n, and returns how many bits
// are set.
func flattenGo(start []uint64, n int, pos *positions) int {
	count := 0
	for k, w := range start {
		base := uint16(k * blockBytes)
		for ; w != 0; w &= w - 1 {
			pos[count] = base + uint16(bits.TrailingZeros64(w))
			count++
		}
	}
	return endAt(pos, count, n)
}

func endAt(pos *positions, count, n int) int {
	for count > 0 && int(pos[count-1]) >= n {
		count--
	}
	pos[count] = uint16(n)
	return count
}

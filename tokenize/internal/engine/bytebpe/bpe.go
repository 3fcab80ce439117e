package bytebpe

// maxShort is the length of the longest word that the array merger takes: positions have six bits,
// and two values are sentinels.
const maxShort = 60

// merger holds the scratch of one goroutine's merging.
//
// The array merger keeps, for each live symbol, rank<<6 | position of the pair that begins there;
// the least of these words is the next merge, leftmost first among equals. Symbols are linked by
// position, so nothing moves.
type merger struct {
	m    *Model
	memo *cache // holds chunks of long words
	work int    // symbols merged so far; tests compare it with the bytes encoded
	rk   [64]uint32
	sym  [64]uint32
	next [64]uint8
	prev [64]uint8
	ids  [64]uint32 // result of the array merger
	at   [64]uint8  // where each result begins in the word

	symbols [mergeWidth * 72]uint32 // scratch of the kernel that merges some words at once
	results mergeResults
	text    [stretchBytes + kernelBytes]byte // the windows'

	heap heapMerger
}

// mergeWidth is how many words a kernel merges at once.
const mergeWidth = 8

// mergeJobs are words of 1..16 bytes in a buffer.
type mergeJobs [mergeWidth]struct{ begin, length uint32 }

type mergeResults struct {
	ids    [mergeWidth][16]uint32
	starts [mergeWidth]uint32 // a bit for each offset in the word where an id begins
	count  [mergeWidth]uint32
}

// wideWidth is how many words of up to wideBytes bytes a kernel merges at once.
const (
	wideWidth = 4
	wideBytes = 32
)

// wideJobs are words of 1..wideBytes bytes in a buffer.
type wideJobs [wideWidth]struct{ begin, length uint32 }

type wideResults struct {
	ids    [wideWidth][wideBytes]uint32
	starts [wideWidth]uint32
	count  [wideWidth]uint32
}

func (g *merger) mergeWideGo(buf []byte, jobs *wideJobs, out *wideResults) {
	for i, j := range jobs {
		n := g.short(buf[j.begin : j.begin+j.length])
		copy(out.ids[i][:], g.ids[:n])
		out.starts[i], out.count[i] = 0, uint32(n)
		for _, at := range g.at[:n] {
			out.starts[i] |= 1 << at
		}
	}
}

func (g *merger) mergeSomeGo(buf []byte, jobs *mergeJobs, n int, out *mergeResults) {
	for i, j := range jobs[:n] {
		n := g.short(buf[j.begin : j.begin+j.length])
		copy(out.ids[i][:], g.ids[:n])
		starts := uint32(0)
		for _, at := range g.at[:n] {
			starts |= 1 << at
		}
		out.starts[i], out.count[i] = starts, uint32(n)
	}
}

const noPair = ^uint32(0)

// short merges a word of 1..maxShort bytes, all of which have tokens, and returns the number of ids
// left in g.ids.
func (g *merger) short(w []byte) int {
	m := g.m
	n := len(w)
	g.work += n
	if n > maxShort {
		panic("bytebpe: word too long for the array merger")
	}
	if n == 0 {
		return 0
	}
	g.sym[0] = noSymbol
	for i, c := range w {
		g.sym[(i+1)&63] = m.byteID[c]
		g.next[(i+1)&63] = uint8(i + 2)
		g.prev[(i+1)&63] = uint8(i)
	}
	g.sym[(n+1)&63] = noSymbol
	g.rk[0] = noPair
	for i := 1; i < n; i++ {
		r := m.bytePairs[uint32(w[i-1])<<8|uint32(w[i])]
		g.rk[i&63] = r<<6 | uint32(i)
	}
	groups := (n + 8) / 8 // covers 0..n
	for i := n; i < groups*8; i++ {
		g.rk[i&63] = noPair
	}
	for {
		best := g.least(groups)
		if best >= noRank<<6 {
			break
		}
		i := best & 63
		j := uint32(g.next[i])
		k := uint32(g.next[j&63])
		h := uint32(g.prev[i])
		c := m.result(best >> 6)
		g.sym[i] = c
		g.rk[j&63] = noPair
		g.next[i] = uint8(k)
		g.prev[k&63] = uint8(i)
		g.rk[i] = m.pairs.Find(c, g.sym[k&63])<<6 | i
		g.rk[h&63] = m.pairs.Find(g.sym[h&63], c)<<6 | h
	}
	out := 0
	for i := uint8(1); int(i) <= n; i = g.next[i&63] {
		g.ids[out&63] = g.sym[i&63]
		g.at[out&63] = i - 1
		out++
	}
	return out
}

// least returns the smallest of the first 8*groups words. It has no branch on the data.
func (g *merger) least(groups int) uint32 {
	a, b := uint64(noPair), uint64(noPair)
	for i := 0; i < groups; i++ {
		q := (*[8]uint32)(g.rk[i*8&56:])
		a = min64(a, min64(min64(uint64(q[0]), uint64(q[1])), min64(uint64(q[2]), uint64(q[3]))))
		b = min64(b, min64(min64(uint64(q[4]), uint64(q[5])), min64(uint64(q[6]), uint64(q[7]))))
	}
	return uint32(min64(a, b))
}

// min64 returns the lesser of two words below 2^63; the compiler turns min into a branch.
func min64(a, b uint64) uint64 {
	d := int64(a - b)
	return b + uint64(d&(d>>63))
}

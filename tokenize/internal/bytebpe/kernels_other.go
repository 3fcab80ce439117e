//go:build purego || !amd64

package bytebpe

func classify(buf []byte, out []block) (high, nul uint64) { return classifyGo(buf, out) }

func flatten(start []uint64, n int, pos *[windowBytes + 72]uint16) int {
	return flattenGo(start, n, pos)
}

func (e *Encoder) prepare(pos []uint16, out []probe) { e.prepareGo(pos, out) }

func (e *Encoder) lookup(dst []uint32, probes []probe) (_ []uint32, hits int) {
	return e.lookupGo(dst, probes)
}

func (g *merger) merge16(w *[16]byte, n int) int { return g.short(w[:n]) }

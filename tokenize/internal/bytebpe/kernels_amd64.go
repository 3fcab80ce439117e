//go:build !purego

package bytebpe

// What the processor and the operating system offer.
var (
	hasAVX2   bool // with BMI1 and BMI2
	hasAVX512 bool // F, BW, VL
	hasVBMI2  bool
)

func init() {
	highest, _, _, _ := cpuid(0, 0)
	_, _, c1, _ := cpuid(1, 0)
	const osxsave, avx = 1 << 27, 1 << 28
	if highest < 7 || c1&osxsave == 0 || c1&avx == 0 {
		return
	}
	state := xgetbv()
	_, b7, c7, _ := cpuid(7, 0)
	const bmi1, avx2, bmi2 = 1 << 3, 1 << 5, 1 << 8
	const f, bw, vl = 1 << 16, 1 << 30, 1 << 31
	hasAVX2 = state&6 == 6 && b7&(bmi1|avx2|bmi2) == bmi1|avx2|bmi2
	hasAVX512 = hasAVX2 && state&0xe6 == 0xe6 && b7&(f|bw|vl) == f|bw|vl
	const vbmi2 = 1 << 6
	hasVBMI2 = hasAVX512 && c7&vbmi2 != 0
}

//go:noescape
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

//go:noescape
func xgetbv() uint32

//go:noescape
func prepareBMI2(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probe)

//go:noescape
func lookupAVX2(probes *probe, n int, lines *uint64, out *uint32, spill *uint32, mask, head uint64) (hits, written int)

//go:noescape
func classifyAVX512(buf *byte, out *block, n int) (high, nul uint64)

//go:noescape
func flattenVBMI2(start *uint64, n int, pos *uint16) (count int)

//go:noescape
func mergeAVX512(t *mergeTables, word *byte, n int, sym *uint32, out *uint32) (count int)

// merge16 is short for words of 2..16 bytes at the front of a buffer; it leaves ids but not their places.
func (g *merger) merge16(w *[16]byte, n int) int {
	if !hasAVX512 {
		return g.short(w[:n])
	}
	return mergeAVX512(&g.m.tables, &w[0], n, &g.sym[0], &g.ids[0])
}

func classify(buf []byte, out []block) (high, nul uint64) {
	if !hasAVX512 {
		return classifyGo(buf, out)
	}
	_ = buf[len(out)*blockBytes-1]
	return classifyAVX512(&buf[0], &out[0], len(out))
}

func flatten(start []uint64, n int, pos *[windowBytes + 72]uint16) int {
	if !hasVBMI2 {
		return flattenGo(start, n, pos)
	}
	_ = pos[len(start)*blockBytes]
	return endAt(pos, flattenVBMI2(&start[0], len(start), &pos[0]), n)
}

func (e *Encoder) prepare(pos []uint16, out []probe) {
	if !hasAVX2 {
		e.prepareGo(pos, out)
		return
	}
	prepareBMI2(&pos[0], len(out), &e.buf[0], &e.kinds[0], &e.lines[0], &out[0])
}

func (e *Encoder) lookup(dst []uint32, probes []probe) (_ []uint32, hits int) {
	if !hasAVX2 {
		return e.lookupGo(dst, probes)
	}
	n := len(dst)
	hits, written := lookupAVX2(&probes[0], len(probes), &e.lines[0], &dst[: n+1 : cap(dst)][n], &e.spill[0], uint64(len(e.spill)-ringSlack-1), e.spillHead)
	return dst[:n+written], hits
}

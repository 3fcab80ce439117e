//go:build !purego

package bytebpe

import (
	"math/bits"

	"github.com/dsload/dsload/tokenize/internal/cpu"
)

// What the kernels may use; tests turn it off.
var hasAVX2, hasAVX512, hasVBMI2 = cpu.AVX2, cpu.AVX512, cpu.VBMI2

//go:noescape
func prepareBMI2(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probes)

//go:noescape
func prepareAVX512(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probes)

//go:noescape
func matchAVX2(p *probes, n int, lines *uint64, values *uint64, missed *uint16, first int) (misses int)

//go:noescape
func emitAVX2(values *uint64, n int, out *uint32, spill *uint32, mask, head uint64) (done, written int)

//go:noescape
func classifyAVX512(buf *byte, out *block, n int) (high, nul uint64)

//go:noescape
func classifyAVX2(buf *byte, out *block, n int) (high, nul uint64)

//go:noescape
func highBMI2(buf *byte, blocks *block, n int, classes *byte) (bytes int)

//go:noescape
func highVBMI2(buf *byte, blocks *block, n int, classes *byte) (bytes int)

//go:noescape
func flattenVBMI2(start *uint64, n int, pos *uint16) (count int)

//go:noescape
func mergeAVX512(t *mergeTables, buf *byte, jobs *mergeJobs, n int, sym *uint32, out *mergeResults)

//go:noescape
func mergeWideAVX512(t *mergeTables, buf *byte, jobs *wideJobs, sym *uint32, out *wideResults)

func classify(buf []byte, out []block) (high, nul uint64) {
	if !hasAVX2 {
		return classifyGo(buf, out)
	}
	_ = buf[len(out)*blockBytes-1]
	if !hasAVX512 {
		return classifyAVX2(&buf[0], &out[0], len(out))
	}
	return classifyAVX512(&buf[0], &out[0], len(out))
}

// classifyHigh adds the classes of characters beyond ASCII to blocks[1:]; blocks[0] is spare. n is
// the length of the window.
func (m *Model) classifyHigh(buf []byte, blocks []block, n int) {
	if hasAVX2 {
		want := 0
		for i := range blocks[1:] {
			want += bits.OnesCount64(blocks[1+i].high)
		}
		got := 0
		if hasVBMI2 {
			got = highVBMI2(&buf[0], &blocks[1], len(blocks)-1, &m.classes[0])
		} else {
			got = highBMI2(&buf[0], &blocks[1], len(blocks)-1, &m.classes[0])
		}
		if got == want {
			return
		}
		classify(buf, blocks[1:])
	}
	m.classifyHighGo(buf[:n], blocks[1:])
}

func flatten(start []uint64, n int, pos *positions) int {
	if !hasVBMI2 {
		return flattenGo(start, n, pos)
	}
	_ = pos[len(start)*blockBytes]
	return endAt(pos, flattenVBMI2(&start[0], len(start), &pos[0]), n)
}

func (e *Encoder) prepare(first, n int) {
	switch {
	case hasAVX512:
		prepareAVX512(&e.pos[first], n, &e.buf[0], &e.kinds[0], &e.lines[0], e.batchFrom(first))
	case hasAVX2:
		prepareBMI2(&e.pos[first], n, &e.buf[0], &e.kinds[0], &e.lines[0], e.batchFrom(first))
	default:
		e.prepareGo(first, n)
	}
}

func (e *Encoder) match(first, n, misses int) int {
	if !hasAVX2 {
		return e.matchGo(first, n, misses)
	}
	return misses + matchAVX2(e.batchFrom(first), n, &e.lines[0], &e.values[first], &e.missed[misses], first)
}

func (e *Encoder) emit(dst []uint32, first, words int) (_ []uint32, done int) {
	if !hasAVX2 {
		return e.emitGo(dst, first, words)
	}
	n := len(dst)
	done, written := emitAVX2(&e.values[first], words-first, &dst[: n+1 : cap(dst)][n], &e.spill[0],
		uint64(len(e.spill)-ringSlack-1), e.spillHead)
	return dst[:n+written], first + done
}

func (g *merger) mergeSome(buf []byte, jobs *mergeJobs, n int, out *mergeResults) {
	if !hasAVX512 {
		g.mergeSomeGo(buf, jobs, n, out)
		return
	}
	mergeAVX512(&g.m.tables, &buf[0], jobs, n, &g.symbols[0], out)
}

func (g *merger) mergeWide(buf []byte, jobs *wideJobs, out *wideResults) {
	if !hasAVX512 {
		g.mergeWideGo(buf, jobs, out)
		return
	}
	mergeWideAVX512(&g.m.tables, &buf[0], jobs, &g.symbols[0], out)
}

// hasMergeWide reports whether mergeWide is faster than merging the same words one by one.
func hasMergeWide() bool { return hasAVX512 }

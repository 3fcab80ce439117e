//go:build !purego

package bytebpe

// hasNEON is false only in tests and benchmarks, which compare the kernels with their twins: every
// arm64 processor has the instructions.
var hasNEON = true

// classBits says which masks an ASCII character has a bit in; classifyNEON turns bit i of each byte
// into mask i.
var classBits = func() (t [128]byte) {
	const letter, number, space, blank, newline, quote, upper, rare = 1, 2, 4, 8, 16, 32, 64, 128
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = letter, letter|upper
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = number
	}
	t['\t'], t['\v'], t['\f'], t['\n'], t['\r'] = space, space, space, space|newline, space|newline
	t[' '], t['\''], t['/'], t[0] = space|blank, quote, rare, rare
	return t
}()

//go:noescape
func classifyNEON(buf *byte, out *block, n int, classBits *[128]byte) (high, nul uint64)

//go:noescape
func flattenARM64(start *uint64, n int, pos *uint16) (count int)

//go:noescape
func prepareARM64(pos *uint16, n int, buf *byte, kinds *keyKind, lines *uint64, out *probes)

//go:noescape
func matchNEON(p *probes, n int, lines *uint64, values *uint64, missed *uint16, first int) (misses int)

//go:noescape
func emitARM64(values *uint64, n int, out *uint32, spill *uint32, mask, head uint64) (done, written int)

func classify(buf []byte, out []block) (high, nul uint64) {
	if !hasNEON {
		return classifyGo(buf, out)
	}
	_ = buf[len(out)*blockBytes-1]
	return classifyNEON(&buf[0], &out[0], len(out), &classBits)
}

func (m *Model) classifyHigh(buf []byte, blocks []block, n int) {
	m.classifyHighGo(buf[:n], blocks[1:])
}

func flatten(start []uint64, n int, pos *positions) int {
	if !hasNEON {
		return flattenGo(start, n, pos)
	}
	_ = pos[len(start)*blockBytes]
	return endAt(pos, flattenARM64(&start[0], len(start), &pos[0]), n)
}

func (e *Encoder) prepare(first, n int) {
	if !hasNEON {
		e.prepareGo(first, n)
		return
	}
	prepareARM64(&e.pos[first], n, &e.buf[0], &e.kinds[0], &e.lines[0], e.batchFrom(first))
}

func (e *Encoder) match(first, n, misses int) int {
	if !hasNEON {
		return e.matchGo(first, n, misses)
	}
	return misses + matchNEON(e.batchFrom(first), n, &e.lines[0], &e.values[first], &e.missed[misses], first)
}

func (e *Encoder) emit(dst []uint32, first, words int) (_ []uint32, done int) {
	if !hasNEON {
		return e.emitGo(dst, first, words)
	}
	n := len(dst)
	done, written := emitARM64(&e.values[first], words-first, &dst[: n+1 : cap(dst)][n], &e.spill[0],
		uint64(len(e.spill)-ringSlack-1), e.spillHead)
	return dst[:n+written], first + done
}

func (g *merger) mergeSome(buf []byte, jobs *mergeJobs, n int, out *mergeResults) {
	g.mergeSomeGo(buf, jobs, n, out)
}

func (g *merger) mergeWide(buf []byte, jobs *wideJobs, out *wideResults) {
	g.mergeWideGo(buf, jobs, out)
}

func hasMergeWide() bool { return false }

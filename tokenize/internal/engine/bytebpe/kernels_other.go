//go:build purego || (!amd64 && !arm64)

package bytebpe

func classify(buf []byte, out []block) (high, nul uint64) { return classifyGo(buf, out) }

func (m *Model) classifyHigh(buf []byte, blocks []block, n int) {
	m.classifyHighGo(buf[:n], blocks[1:])
}

func flatten(start []uint64, n int, pos *positions) int { return flattenGo(start, n, pos) }

func (e *Encoder) prepare(first, n int) { e.prepareGo(first, n) }

func (e *Encoder) match(first, n, misses int) int { return e.matchGo(first, n, misses) }

func (e *Encoder) emit(dst []uint32, first, words int) (_ []uint32, done int) {
	return e.emitGo(dst, first, words)
}

func (g *merger) mergeSome(buf []byte, jobs *mergeJobs, n int, out *mergeResults) {
	g.mergeSomeGo(buf, jobs, n, out)
}

func (g *merger) mergeWide(buf []byte, jobs *wideJobs, out *wideResults) {
	g.mergeWideGo(buf, jobs, out)
}

func hasMergeWide() bool { return false }

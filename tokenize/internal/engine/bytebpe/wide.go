package bytebpe

import "math/bits"

// Words of 17 to maxLong bytes are merged in a batch: those of one window of text share the lanes
// of a kernel. A word of up to wideBytes is one job. A longer one is cut into overlapping pieces of
// wideBytes, which are joined at tokens that two neighbours share, as long.go proves.

const (
	batchPieces = 64
	// A piece begins with a character, and at most wideStep bytes after the one before: the rest
	// overlaps, so that most often a token lies in both.
	wideStep    = 16
	minWideStep = wideStep - 3 // a character of four bytes may lie across wideStep
)

// wideBatch collects words for mergeWide.
type wideBatch struct {
	words   [batchPieces]wideWord
	n       int // words
	pieces  int
	jobs    [batchPieces / wideWidth]wideJobs
	results [batchPieces / wideWidth]wideResults
}

type wideWord struct {
	hash          uint64
	index         uint16 // in the window of text
	first, pieces uint16
}

// batch adds a word of the window of text to the batch.
func (e *Encoder) batch(w int, hash uint64) {
	b := &e.wide
	begin, end := int(e.pos[w]), int(e.pos[w+1])
	if b.pieces+max(0, end-begin-wideBytes+minWideStep-1)/minWideStep+1 > batchPieces {
		e.resolveBatch()
	}
	q := &b.words[b.n]
	b.n++
	*q = wideWord{hash: hash, index: uint16(w), first: uint16(b.pieces)}
	for {
		job := &b.jobs[b.pieces/wideWidth][b.pieces%wideWidth]
		job.begin, job.length = uint32(begin), uint32(min(wideBytes, end-begin))
		b.pieces++
		q.pieces++
		if end-begin <= wideBytes {
			return
		}
		begin += wideStep
		for back := 3; back > 0 && e.buf[begin]&0xc0 == 0x80; back-- {
			begin--
		}
	}
}

// resolveBatch merges the words of the batch and keeps their values.
func (e *Encoder) resolveBatch() {
	b := &e.wide
	for i := b.pieces; i%wideWidth != 0; i++ {
		b.jobs[i/wideWidth][i%wideWidth].length = 1
	}
	for i := 0; i*wideWidth < b.pieces; i++ {
		e.mergeWide(e.buf[:], &b.jobs[i], &b.results[i])
	}
	for i := range b.words[:b.n] {
		q := &b.words[i]
		w := int(q.index)
		r, lane := &b.results[q.first/wideWidth], q.first%wideWidth
		ids, ok := r.ids[lane][:r.count[lane]], true
		if q.pieces > 1 {
			if ids, ok = b.join(e.ids[:0], q); !ok {
				ids = e.appendWhole(e.ids[:0], e.buf[e.pos[w]:e.pos[w+1]])
			}
		}
		e.keep(w, q.hash, e.value(ids))
	}
	b.n, b.pieces = 0, 0
}

// appendWhole appends the ids of a word whose pieces could not be joined: smaller ones would not
// be, either.
func (g *merger) appendWhole(dst []uint32, w []byte) []uint32 {
	if len(w) > maxShort {
		return g.appendMerged(dst, w)
	}
	n := g.short(w)
	return append(dst, g.ids[:n]...)
}

// join appends the ids of a word of several pieces; ok is false if two of them share no token.
func (b *wideBatch) join(dst []uint32, q *wideWord) (_ []uint32, ok bool) {
	used := 0 // where the used part of the piece begins
	for i := int(q.first); ; i++ {
		r, lane, job := &b.results[i/wideWidth], i%wideWidth, &b.jobs[i/wideWidth][i%wideWidth]
		starts, to := uint64(r.starts[lane]), int(job.length)
		last := i+1 == int(q.first+q.pieces)
		next := 0
		if !last {
			k := i + 1
			following := &b.jobs[k/wideWidth][k%wideWidth]
			step := int(following.begin - job.begin)
			next = sharedToken((starts|1<<to)>>step,
				(uint64(b.results[k/wideWidth].starts[k%wideWidth])|1<<following.length)&(1<<(to-step+1)-1),
				max(0, used-step))
			if next < 0 {
				return dst, false
			}
			to = next + step
		}
		from := bits.OnesCount64(starts & (1<<used - 1))
		n := bits.OnesCount64(starts >> used << used & (1<<to - 1))
		dst = append(dst, r.ids[lane][from:from+n]...)
		if last {
			return dst, true
		}
		used = next
	}
}

package bytebpe

import "math/bits"

// maxTexts is how many texts may share a window.
const maxTexts = 64

// AppendEach appends the ids of texts, each as Append does, and calls done after each with its number and all ids so
// far. What done returns is where the next ones go.
//
// Short texts share a window. Few words of one are not cached, and the kernel that merges those takes eight at once.
func (e *Encoder) AppendEach(dst []uint32, texts [][]byte, done func(i int, dst []uint32) []uint32) []uint32 {
	for from := 0; from < len(texts); {
		shared, words := e.share(texts[from:])
		if shared == 0 {
			dst = done(from, e.Append(dst, texts[from], true, true))
			from++
			continue
		}
		e.look(words, false)
		w := 0
		for i, end := range e.ends[:shared] {
			if cap(dst)-len(dst) >= len(texts[from+i])+ringSlack {
				dst = e.appendValues(dst, w, int(end))
			} else {
				dst = append(dst, e.appendValues(e.ids[:0], w, int(end))...)
			}
			dst, w = done(from+i, dst), int(end)
		}
		from += shared
	}
	return dst
}

// share puts texts next to each other into the window, as many as there is room for, and returns how many, and how
// many words they have. It leaves out one with a zero byte, and those after it.
func (e *Encoder) share(texts [][]byte) (shared, words int) {
	if e.m.split == None {
		return 0, 0
	}
	at := 0
	e.joint[0] = 0
	for _, s := range texts[:min(len(texts), maxTexts)] {
		n := len(s)
		if n > windowBytes-at {
			break
		}
		buf := e.buf[at:]
		copy(buf[copy(buf, s):], blanks)
		if e.bounds(buf, n) {
			break
		}
		e.start[n/blockBytes] &= 1<<(n%blockBytes) - 1 // the others are the padding's
		to, shift := e.joint[at/blockBytes:][:n/blockBytes+2], at%blockBytes
		before := to[0] // the bits of a block that are known
		for k, start := range e.start[:len(to)-1] {
			words += bits.OnesCount64(start)
			to[k] = before | start<<(shift&63)
			before = start >> 1 >> (^shift & 63)
		}
		to[len(to)-1] = before
		e.ends[shared] = uint16(words)
		shared++
		at += n
	}
	e.scanned += at
	flatten(e.joint[:at/blockBytes+1], at, &e.pos)
	return shared, words
}

package unigram

import (
	"math"
	"slices"
	"unicode/utf8"
)

// path is the best path that ends at some offset: where its last piece begins, and that piece.
type path struct{ start, id uint32 }

// node is a path and its sum.
type node struct {
	score float64
	start uint32 // where its last piece begins; noStart if no path ends here
	id    uint32
}

const (
	noStart = ^uint32(0)
	// unkNode stands for the unknown piece's id in models without one.
	unkNode = ^uint32(0)
	// stretchBytes is how many bytes of a word are searched before settled ids are written.
	stretchBytes = 512
)

// AppendWord appends the ids of one normalized pre-token: the model alone. Unknown text gives no
// ids if the model has no unknown piece.
func (e *Encoder) AppendWord(dst []uint32, word []byte) []uint32 {
	if len(word) > stretchBytes {
		return e.appendWord(dst, word, stretchBytes)
	}
	return e.appendShort(dst, word)
}

// appendWord searches a word by stretches. It keeps sums only as far back as a piece reaches, and
// paths back to where all of them meet, so that the search of a long word usually takes a few KiB.
func (e *Encoder) appendWord(dst []uint32, word []byte, stretch int) []uint32 {
	if len(word) == 0 {
		return dst
	}
	width := min(len(word), stretch+e.m.longest)
	if cap(e.sums) <= width {
		e.sums = make([]float64, max(width+1, stretchBytes))
	}
	sums := e.sums[:width+1] // sums[i] is for offset at+i
	clearSums(sums)
	sums[0] = 0
	at, reach := 0, 0
	origin := 0 // paths[i] is for offset origin+i; those before it are written,
	open := 0   // except unknown text from open up to origin
	for {
		end := min(len(word), at+width)
		stop := at + stretch
		if end == len(word) {
			stop = end
		}
		e.growPaths(end-origin+1, len(word)-origin+1)
		var steps int
		steps, reach = e.search(word[at:end], stop-at, at-origin, reach)
		if end == len(word) {
			break
		}
		clearSums(sums[copy(sums, sums[steps:]):])
		at += steps
		if steps == reach {
			dst, open = e.appendPath(dst, word[:at], origin, open, false)
			origin = at
		}
		reach -= steps
	}
	dst, _ = e.appendPath(dst, word, origin, open, true)
	if cap(e.paths) > 2*keepScratch {
		e.paths = nil
	}
	if cap(e.sums) > 2*keepScratch {
		e.sums = nil
	}
	return dst
}

// clearSums sets sums to NaN, which compares false with all others: no path ends there.
func clearSums(sums []float64) {
	for i := range sums {
		sums[i] = math.NaN()
	}
}

// growPaths makes room for n paths, and for at most most.
func (e *Encoder) growPaths(n, most int) {
	if len(e.paths) < n {
		longer := make([]path, max(n, min(most, 2*len(e.paths)), keepScratch/8))
		copy(longer, e.paths)
		e.paths = longer
	}
}

// search extends the paths that end before stop. It returns the offset of the next path and the
// last offset that a path reaches, at least reach. e.sums[0] and e.paths[before] are for the
// beginning of text.
func (e *Encoder) search(text []byte, stop, before, reach int) (start, reached int) {
	m := e.m
	sums, paths := e.sums[:len(text)+1], e.paths[before:before+len(text)+1]
	scores, trie := m.cfg.Scores, *m.trie
	root, unk := trie.Root(), m.unkID()
	tied := false
	for start < stop {
		size := 1
		if text[start] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(text[start:])
		}
		base := sums[start]
		ends := sums[start+1:] // ends[i] is after rest[i]
		rest := text[start:][:len(ends)]
		to := paths[start+1:][:len(ends)]
		single := false
		n := root
		for i, b := range rest {
			var ok bool
			if n, ok = trie.Step(n, b); !ok {
				break
			}
			id, ok := n.Value()
			if !ok {
				continue
			}
			score, old := scores[id]+base, ends[i]
			if !(score <= old) {
				ends[i], to[i] = score, path{uint32(before + start), id}
			}
			tied = tied || near(score, old)
			single = single || i+1 == size
			reach = max(reach, start+i+1)
		}
		if !single {
			score, old := m.unkScore+base, ends[size-1]
			if !(score <= old) {
				ends[size-1], to[size-1] = score, path{uint32(before + start), unk}
			}
			tied = tied || near(score, old)
			reach = max(reach, start+size)
		}
		start += size
	}
	e.nearTie = e.nearTie || tied
	return start, reach
}

// appendPath appends the ids of the best path from origin to the end of text. Neighbouring unknown
// nodes become one. Unless text is the last of its word, those at its end wait for what follows;
// open is the offset from which nothing has been written.
func (e *Encoder) appendPath(dst []uint32, text []byte, origin, open int, last bool) ([]uint32, int) {
	paths, unk := e.paths, e.m.unkID()
	end := uint32(len(text) - origin)
	if !last {
		for end > 0 && paths[end].id == unk {
			end = paths[end].start
		}
		if end == 0 {
			return dst, open
		}
	}
	begin, rest := len(dst), origin+int(end)
	for end > 0 { // backwards: ids come out in reverse
		p := paths[end]
		if p.id != unk {
			dst = append(dst, p.id)
			end = p.start
			continue
		}
		start := p.start
		for start > 0 && paths[start].id == unk {
			start = paths[start].start
		}
		from := origin + int(start)
		if start == 0 {
			from = open
			open = origin
		}
		dst = e.m.appendUnknown(dst, text[from:origin+int(end)])
		end = start
	}
	if open < origin {
		dst = e.m.appendUnknown(dst, text[open:origin])
	}
	slices.Reverse(dst[begin:])
	return dst, rest
}

func (m *Model) unkID() uint32 {
	if m.cfg.UnkID < 0 {
		return unkNode
	}
	return uint32(m.cfg.UnkID)
}

// appendUnknown appends, in reverse, the ids of fused unknown text: the piece that it happens to
// be, its bytes, or the unknown piece.
func (m *Model) appendUnknown(dst []uint32, text []byte) []uint32 {
	if id, ok := m.trie.Find(text); ok {
		return append(dst, id)
	}
	if m.cfg.ByteFallback {
		before := len(dst)
		for i := len(text) - 1; i >= 0; i-- {
			id := m.cfg.ByteIDs[text[i]]
			if id < 0 {
				dst = dst[:before]
				break
			}
			dst = append(dst, uint32(id))
		}
		if len(dst) > before {
			return dst
		}
	}
	if m.cfg.UnkID >= 0 {
		dst = append(dst, uint32(m.cfg.UnkID))
	}
	return dst
}

// appendShort is appendWord for words of one stretch, as most are. Paths and sums share an array,
// which is faster.
func (e *Encoder) appendShort(dst []uint32, word []byte) []uint32 {
	if len(word) == 0 {
		return dst
	}
	e.searchShort(word)
	nodes := e.nodes
	unk := e.m.unkID()
	// Backwards: ids come out in reverse, and neighbouring unknown nodes become one.
	begin := len(dst)
	for end := uint32(len(word)); end > 0; {
		nd := nodes[end]
		if nd.id != unk {
			dst = append(dst, nd.id)
			end = nd.start
			continue
		}
		start := nd.start
		for start > 0 && nodes[start].id == unk {
			start = nodes[start].start
		}
		dst = e.m.appendUnknown(dst, word[start:end])
		end = start
	}
	slices.Reverse(dst[begin:])
	return dst
}

// searchShort fills e.nodes for word. The best path, ties and unknown characters are found in one
// pass over the trie, since this is where most of the time goes.
func (e *Encoder) searchShort(word []byte) {
	m := e.m
	if cap(e.nodes) <= len(word) {
		e.nodes = make([]node, stretchBytes+1)
	}
	nodes := e.nodes[:len(word)+1]
	e.nodes = nodes
	for i := range nodes {
		nodes[i].start = noStart
	}
	nodes[0].score = 0
	scores := m.cfg.Scores
	trie := m.trie
	root := trie.Root()
	unk := m.unkID()
	for start := 0; start < len(word); {
		size := 1
		if word[start] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(word[start:])
		}
		ends := nodes[start+1:] // ends[i] is after rest[i]
		rest := word[start:]
		rest = rest[:len(ends)]
		base := nodes[start].score
		single := false
		n := root
		for i, b := range rest {
			var ok bool
			if n, ok = trie.Step(n, b); !ok {
				break
			}
			id, ok := n.Value()
			if !ok {
				continue
			}
			score := scores[id] + base
			if t := &ends[i]; t.start == noStart {
				*t = node{score, uint32(start), id}
			} else {
				if near(score, t.score) {
					e.nearTie = true
				}
				if score > t.score {
					*t = node{score, uint32(start), id}
				}
			}
			if i+1 == size {
				single = true
			}
		}
		if !single {
			score := m.unkScore + base
			if t := &ends[size-1]; t.start == noStart || score > t.score {
				e.nearTie = e.nearTie || t.start != noStart && near(score, t.score)
				*t = node{score, uint32(start), unk}
			} else if near(score, t.score) {
				e.nearTie = true
			}
		}
		start += size
	}
}

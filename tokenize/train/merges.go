package train

import "container/heap"

// learner learns merges: it repeatedly turns the most frequent pair of neighbouring symbols in all
// words into a symbol. Among equally frequent pairs the lower id of the left symbol comes first,
// then that of the right symbol (Hugging Face's rule).
type learner struct {
	symbols []uint32 // all words'; a word's symbols begin at its start and become fewer
	words   []symbolWord
	pairs   map[uint64]int32 // values are indexes of info
	info    []pairInfo
	queue   pairQueue
}

type symbolWord struct {
	start, n uint32
	count    int64
}

// pairInfo is a pair's count and the words where it was seen, some of which may have lost it.
type pairInfo struct {
	count int64
	words []uint32
}

type pairEntry struct {
	count int64
	pair  uint64 // left<<32 | right
}

// pairQueue is a heap with the next pair to merge on top. Entries may be out of date.
type pairQueue []pairEntry

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	if q[i].count != q[j].count {
		return q[i].count > q[j].count
	}
	return q[i].pair < q[j].pair
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(pairEntry)) }
func (q *pairQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newLearner() *learner { return &learner{pairs: make(map[uint64]int32)} }

// addWord adds a word of at least one symbol.
func (l *learner) addWord(symbols []uint32, count int64) {
	w := uint32(len(l.words))
	l.words = append(l.words, symbolWord{uint32(len(l.symbols)), uint32(len(symbols)), count})
	l.symbols = append(l.symbols, symbols...)
	for i := 1; i < len(symbols); i++ {
		l.change(symbols[i-1], symbols[i], count, w)
	}
}

// change adds by to a pair's count. If the count grows, word w joins the pair's words.
func (l *learner) change(left, right uint32, by int64, w uint32) uint64 {
	pair := uint64(left)<<32 | uint64(right)
	i, ok := l.pairs[pair]
	if !ok {
		i = int32(len(l.info))
		l.pairs[pair] = i
		l.info = append(l.info, pairInfo{})
	}
	p := &l.info[i]
	p.count += by
	if n := len(p.words); by > 0 && (n == 0 || p.words[n-1] != w) {
		p.words = append(p.words, w)
	}
	return pair
}

// learn merges until full returns true or no pair occurs often enough. symbol returns the id of a
// merged pair, which may exist already. next is the count of the most frequent pair that remains.
func (l *learner) learn(minCount int64, full func() bool, symbol func(left, right uint32) uint32) (next int64) {
	l.queue = make(pairQueue, 0, len(l.info))
	for pair, i := range l.pairs {
		l.queue = append(l.queue, pairEntry{l.info[i].count, pair})
	}
	heap.Init(&l.queue) // entries differ, so map order does not matter
	grown := make(map[uint64]bool)
	for len(l.queue) > 0 && !full() {
		top := l.queue[0]
		p := &l.info[l.pairs[top.pair]]
		if p.count != top.count {
			if p.count <= 0 {
				heap.Pop(&l.queue)
			} else {
				l.queue[0].count = p.count
				heap.Fix(&l.queue, 0)
			}
			continue
		}
		if next = max(top.count, 0); next < minCount || next < 1 {
			return next
		}
		heap.Pop(&l.queue)
		words := p.words
		p.words, p.count = nil, 0
		left, right := uint32(top.pair>>32), uint32(top.pair)
		merged := symbol(left, right)
		clear(grown)
		for _, w := range words {
			l.mergeIn(w, left, right, merged, grown)
		}
		l.info[l.pairs[top.pair]].count = 0 // occurrences that overlapped, as in a run of one symbol, are gone too
		for pair := range grown {
			if n := l.info[l.pairs[pair]].count; n > 0 && pair != top.pair {
				heap.Push(&l.queue, pairEntry{n, pair})
			}
		}
	}
	return 0
}

// mergeIn replaces the pair in one word and counts the pairs that come and go.
func (l *learner) mergeIn(w, left, right, merged uint32, grown map[uint64]bool) {
	word := &l.words[w]
	s := l.symbols[word.start : word.start+word.n]
	n := 0
	for i := 0; i < len(s); {
		if i+1 == len(s) || s[i] != left || s[i+1] != right {
			s[n] = s[i]
			n++
			i++
			continue
		}
		if n > 0 {
			l.change(s[n-1], left, -word.count, w)
			grown[l.change(s[n-1], merged, word.count, w)] = true
		}
		if i+2 < len(s) {
			l.change(right, s[i+2], -word.count, w)
			grown[l.change(merged, s[i+2], word.count, w)] = true
		}
		s[n] = merged
		n++
		i += 2
	}
	word.n = uint32(n)
}

package train

import (
	"cmp"
	"math"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/bytetrie"
)

// maximizeSeeds turns the weights of seeds into log probabilities.
func maximizeSeeds(pieces []piece, weights []float64) []piece {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	logSum := math.Log(sum)
	for i, w := range weights {
		pieces[i].score = math.Log(w) - logSum
	}
	return pieces
}

// expect returns the expected count of each piece over all segmentations of all words, weighted by
// probability (forward-backward).
//
// Probabilities of long words underflow; each is multiplied by e^(scale · bytes), which is the same
// for all segmentations of a word and so changes nothing, with scale near the average cost of a
// byte.
func expect(words []word, pieces []piece) []float64 {
	t, _ := newTrie(pieces)
	expected := make([]float64, len(pieces))
	scale := bytesCost(words, pieces, t)
	weight := make([]float64, len(pieces))
	for i, p := range pieces {
		weight[i] = math.Exp(p.score + float64(scale*float64(len(p.text))))
	}
	var forward, backward []float64
	var edges []edge
	for _, w := range words {
		n := len(w.text)
		forward = append(forward[:0], make([]float64, n+1)...)
		backward = append(backward[:0], make([]float64, n+1)...)
		edges = edges[:0]
		forward[0] = 1
		for i := 0; i < n; i++ {
			if forward[i] == 0 {
				continue
			}
			t.walk(w.text[i:], func(length int, id int32) {
				forward[i+length] += float64(forward[i] * weight[id])
				edges = append(edges, edge{int32(i), int32(i + length), id})
			})
		}
		total := forward[n]
		if !(total > 0) || math.IsInf(total, 0) {
			continue // out of the range of float64: not an ordinary word
		}
		backward[n] = 1
		for k := len(edges) - 1; k >= 0; k-- {
			e := edges[k]
			backward[e.from] += float64(backward[e.to] * weight[e.id])
		}
		share := float64(w.count) / total
		for _, e := range edges {
			expected[e.id] += float64(float64(forward[e.from]*weight[e.id]) * float64(backward[e.to]*share))
		}
	}
	return expected
}

// edge is a piece at a position in a word.
type edge struct {
	from, to int32
	id       int32
}

// bytesCost returns the cost per byte, in nats, of the best segmentations of some of the words.
func bytesCost(words []word, pieces []piece, t trie) float64 {
	var v viterbi
	cost, n := 0.0, 0
	step := max(1, len(words)/1000)
	for i := 0; i < len(words); i += step {
		for _, id := range v.best(words[i].text, pieces, t, -1) {
			cost -= pieces[id].score
		}
		n += len(words[i].text)
	}
	if n == 0 {
		return 0
	}
	return cost / float64(n)
}

// viterbi finds best segmentations; it keeps buffers between calls.
type viterbi struct {
	score []float64
	last  []edge
	path  []int32
}

// best returns the ids of the segmentation with the highest score that does not use the piece
// without, nil if there is none.
func (v *viterbi) best(text string, pieces []piece, t trie, without int32) []int32 {
	n := len(text)
	v.score, v.last = v.score[:0], v.last[:0]
	for range n + 1 {
		v.score = append(v.score, math.Inf(-1))
		v.last = append(v.last, edge{})
	}
	v.score[0] = 0
	for i := 0; i < n; i++ {
		if math.IsInf(v.score[i], -1) {
			continue
		}
		t.walk(text[i:], func(length int, id int32) {
			if s := v.score[i] + pieces[id].score; s > v.score[i+length] && id != without {
				v.score[i+length], v.last[i+length] = s, edge{int32(i), int32(i + length), id}
			}
		})
	}
	v.path = v.path[:0]
	if math.IsInf(v.score[n], -1) {
		return nil
	}
	for at := n; at > 0; at = int(v.last[at].from) {
		v.path = append(v.path, v.last[at].id)
	}
	slices.Reverse(v.path)
	return v.path
}

// prune drops the pieces whose loss costs least likelihood when others replace them.
func prune(words []word, pieces []piece, wanted int) []piece {
	t, _ := newTrie(pieces)
	var v viterbi
	used := make([]float64, len(pieces))
	inWords := make([]float64, len(pieces)) // occurrences of words that use the piece
	seen := make([]int32, len(pieces))
	total, all := 0.0, 0.0
	for k, w := range words {
		all += float64(w.count)
		for _, id := range v.best(w.text, pieces, t, -1) {
			used[id] += float64(w.count)
			total += float64(w.count)
			if seen[id] != int32(k+1) {
				seen[id] = int32(k + 1)
				inWords[id] += float64(w.count)
			}
		}
	}
	keep := make([]bool, len(pieces))
	kept := 0
	var candidates []candidate
	logTotal := math.Log(total)
	for id, p := range pieces {
		if p.char {
			keep[id] = true
			kept++
			continue
		}
		if used[id] == 0 {
			continue
		}
		others := v.best(p.text, pieces, t, int32(id))
		if others == nil {
			keep[id] = true
			kept++
			continue
		}
		logOther := 0.0
		logTotalOther := math.Log(total + float64(used[id]*float64(len(others)-1)))
		for _, o := range others {
			logOther += math.Log(used[o]+used[id]) - logTotalOther
		}
		candidates = append(candidates, candidate{id,
			float64(inWords[id] / all * (math.Log(used[id]) - logTotal - logOther))})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(-cmp.Compare(a.loss, b.loss), cmp.Compare(pieces[a.id].text, pieces[b.id].text))
	})
	room := max(0, max(wanted, int(shrink*float64(len(pieces))))-kept)
	for _, c := range candidates[:min(room, len(candidates))] {
		keep[c.id] = true
	}
	id := -1
	return slices.DeleteFunc(pieces, func(piece) bool {
		id++
		return !keep[id]
	})
}

// A candidate is a piece that others can spell, with the cost of doing so.
type candidate struct {
	id   int
	loss float64
}

// trie finds all pieces that a text begins with. Once the seeds have one, so have the pieces that are left of them.
type trie struct{ *bytetrie.Trie }

func newTrie(pieces []piece) (trie, error) {
	keys, ids := make([][]byte, len(pieces)), make([]uint32, len(pieces))
	for id, p := range pieces {
		keys[id], ids[id] = []byte(p.text), uint32(id)
	}
	t, err := bytetrie.New(keys, ids)
	return trie{t}, err
}

// walk calls f with the length and id of every piece that begins text, shorter ones first.
func (t trie) walk(text string, f func(length int, id int32)) {
	node, ok := t.Root(), true
	for i := range len(text) {
		if node, ok = t.Step(node, text[i]); !ok {
			return
		}
		if id, ok := node.Value(); ok {
			f(i+1, int32(id))
		}
	}
}

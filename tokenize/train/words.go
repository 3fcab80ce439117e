package train

// word is a word and its count.
type word struct {
	text  string
	count int64
}

// wordTable counts words within a budget of bytes. When a new word would exceed it, all words that
// occurred at most t times are dropped, for t = 1, 2, 3 … until half of the budget is free. A
// dropped word that occurs again counts from zero. This depends on the text and its order alone.
type wordTable struct {
	index   map[string]int32
	words   []word
	used    int64
	budget  int64
	perWord int64 // cost of a word, in this table and in training
	perByte int64 // cost of each of its bytes
	longest int

	total, dropped int64
}

func newWordTable(budget, perWord, perByte int64, longest int) *wordTable {
	return &wordTable{index: make(map[string]int32), budget: budget, perWord: perWord, perByte: perByte,
		longest: longest}
}

func (w *wordTable) add(text []byte) {
	w.total++
	if i, ok := w.index[string(text)]; ok {
		w.words[i].count++
		return
	}
	if len(text) > w.longest {
		w.dropped++
		return
	}
	cost := w.perWord + w.perByte*int64(len(text))
	if w.used+cost > w.budget {
		w.prune()
	}
	w.used += cost
	s := string(text)
	w.index[s] = int32(len(w.words))
	w.words = append(w.words, word{s, 1})
}

func (w *wordTable) prune() {
	for t := int64(1); w.used > w.budget/2; t++ {
		kept := w.words[:0]
		w.used = 0
		for _, x := range w.words {
			if x.count <= t {
				w.dropped += x.count
				continue
			}
			w.used += w.perWord + w.perByte*int64(len(x.text))
			kept = append(kept, x)
		}
		clear(w.words[len(kept):])
		w.words = kept
	}
	w.index = make(map[string]int32, len(w.words))
	for i, x := range w.words {
		w.index[x.text] = int32(i)
	}
}

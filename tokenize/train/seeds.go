package train

import (
	"cmp"
	"maps"
	"slices"
	"unicode/utf8"
)

// seedPieces returns the characters and the substrings of words that occur at least twice, those
// that cover the most characters first. It drops a substring that is always followed by the same
// character in favour of the longer one. It counts one length after the other, because a substring
// can be frequent only if its longest prefix and suffix are.
func seedPieces(words []word, chars map[rune]int64, limit int) []piece {
	seeds := slices.DeleteFunc(frequent(words), func(s seed) bool { return s.inside })
	slices.SortFunc(seeds, func(a, b seed) int {
		return cmp.Or(-cmp.Compare(a.places*a.chars, b.places*b.chars), cmp.Compare(a.text, b.text))
	})
	seeds = seeds[:min(len(seeds), max(limit-len(chars), 0))]

	pieces := make([]piece, 0, len(chars)+len(seeds))
	weights := make([]float64, 0, cap(pieces))
	for _, c := range slices.Sorted(maps.Keys(chars)) {
		pieces = append(pieces, piece{text: string(c), char: true})
		weights = append(weights, float64(chars[c]))
	}
	for _, s := range seeds {
		pieces = append(pieces, piece{text: s.text})
		weights = append(weights, float64(s.places*s.chars))
	}
	return maximizeSeeds(pieces, weights)
}

// A seed is a substring that occurs at least twice.
type seed struct {
	text   string
	places int64
	chars  int64
	inside bool // part of a longer one that occurs as often
}

// frequent lists the seeds of words, the shortest first.
func frequent(words []word) []seed {
	var seeds []seed
	alive := make([][]bool, len(words)) // for each byte: a frequent substring of the last length begins here
	for i, w := range words {
		alive[i] = make([]bool, len(w.text))
		for j := range w.text {
			alive[i][j] = true
		}
	}
	shorter := map[string]int32{}
	for length := 2; length <= maxPieceChars; length++ {
		counts := map[string]int32{}
		each(words, length, alive, func(_, _ int, s string) { counts[s]++ })
		index := make(map[string]int32)
		next := make([][]bool, len(words))
		each(words, length, alive, func(i, j int, s string) {
			if counts[s] < 2 {
				return
			}
			if next[i] == nil {
				next[i] = make([]bool, len(words[i].text))
			}
			next[i][j] = true
			if _, ok := index[s]; ok {
				return
			}
			index[s] = int32(len(seeds))
			seeds = append(seeds, seed{s, int64(counts[s]), int64(length), false})
			_, n := utf8.DecodeLastRuneInString(s)
			if k, ok := shorter[s[:len(s)-n]]; ok && seeds[k].places == int64(counts[s]) {
				seeds[k].inside = true
			}
		})
		if len(index) == 0 {
			break
		}
		alive, shorter = next, index
	}
	return seeds
}

// each calls f for every substring of length characters that may be frequent: word index, byte
// offset in it, substring.
func each(words []word, length int, alive [][]bool, f func(i, j int, s string)) {
	var starts [maxPieceChars + 1]int // the last offsets at which a character began
	for i, w := range words {
		if alive[i] == nil {
			continue
		}
		n := 0
		visit := func(end int) {
			if n < length {
				return
			}
			from, second := starts[(n-length)%len(starts)], starts[(n-length+1)%len(starts)]
			if alive[i][from] && alive[i][second] {
				f(i, from, w.text[from:end])
			}
		}
		for j := range w.text {
			visit(j)
			starts[n%len(starts)] = j
			n++
		}
		visit(len(w.text))
	}
}

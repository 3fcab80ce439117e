package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	maxPieceChars = 16
	shrink        = 0.75   // part of the pieces that a pruning keeps
	subIterations = 2      // rounds of expectation maximization between prunings
	minExpected   = 0.5    // a piece that is used less is dropped
	coverage      = 0.9995 // part of all characters; the rest become <unk>
	maxLattice    = 256    // characters of a word that are segmented together
)

// piece is a candidate token and its log probability.
type piece struct {
	text  string
	score float64
	char  bool // a single character, which is never dropped
}

func (t *Trainer) finishUnigram(words []word) ([]byte, error) {
	room := t.opts.VocabSize - len(t.opts.SpecialTokens)
	chars, rest := coveringChars(words, room)
	t.unknown = rest
	words = coveredWords(words, chars)
	pieces := seedPieces(words, chars, min(max(10*t.opts.VocabSize, 10000), 1000000))
	seeds := len(pieces)
	if _, err := newTrie(pieces); err != nil {
		return nil, fmt.Errorf("train: %w", invalid("VocabSize", t.opts.VocabSize, "its %d candidates are too long; learn fewer tokens", seeds))
	}
	// Keep a tenth more than wanted until the end, then take the best.
	wanted := max(room*11/10, len(chars))
	for {
		for range subIterations {
			pieces = maximize(pieces, expect(words, pieces))
		}
		if len(pieces) <= wanted {
			break
		}
		before := len(pieces)
		if pieces = prune(words, pieces, wanted); len(pieces) == before {
			break
		}
	}
	pieces = best(pieces, room)
	if len(pieces) < room {
		t.short = fmt.Sprintf("of the %d pieces that occur twice or more in its words, and its characters, "+
			"%d are worth keeping; give it more text", seeds, len(pieces))
	}

	vocab := make([]any, 0, len(t.opts.SpecialTokens)+len(pieces))
	for _, s := range t.opts.SpecialTokens {
		vocab = append(vocab, []any{s, exactFloat(0)})
	}
	for _, p := range pieces {
		vocab = append(vocab, []any{p.text, exactFloat(p.score)})
	}
	norm := []any{object{{"type", "Nmt"}}, object{{"type", "NFKC"}}, object{{"type", "Replace"},
		{"pattern", object{{"Regex", spacesPattern}}}, {"content", " "}}}
	if t.opts.Lowercase {
		norm = append(norm, object{{"type", "Lowercase"}})
	}
	metaspace := object{{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}}
	model := object{{"type", "Unigram"}, {"unk_id", slices.Index(t.opts.SpecialTokens, "<unk>")}, {"vocab", vocab},
		{"byte_fallback", false}}
	return writeFile(byID(t.opts.SpecialTokens), object{{"type", "Sequence"}, {"normalizers", norm}}, metaspace, nil, metaspace, model)
}

// exactFloat is written with six decimals: so few digits that every reader gets the same number,
// even one that rounds twice.
type exactFloat float64

// MarshalJSON implements json.Marshaler.
func (f exactFloat) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(f), 'f', 6, 64), nil
}

// coveringChars returns the most frequent characters that together make up the part coverage of the
// text, at most limit, and the rest.
func coveringChars(words []word, limit int) (chars map[rune]int64, rest []charCount) {
	counted := countChars(words)
	total := int64(0)
	for _, c := range counted {
		total += c.count
	}
	chars = make(map[rune]int64)
	sum := int64(0)
	for _, c := range counted {
		if float64(sum) >= coverage*float64(total) || len(chars) == limit {
			break
		}
		chars[c.char] = c.count
		sum += c.count
	}
	return chars, counted[len(chars):]
}

// coveredWords cuts words at characters without a piece, and where they get too long.
func coveredWords(words []word, chars map[rune]int64) []word {
	var out []word
	for _, w := range words {
		start, n := 0, 0
		for i, c := range w.text {
			_, known := chars[c]
			if known && n < maxLattice {
				n++
				continue
			}
			if i > start {
				out = append(out, word{w.text[start:i], w.count})
			}
			start, n = i, 1
			if !known {
				start, n = i+utf8.RuneLen(c), 0
			}
		}
		if start < len(w.text) {
			out = append(out, word{w.text[start:], w.count})
		}
	}
	return out
}

// best keeps all single characters, and the others with the highest scores.
func best(pieces []piece, room int) []piece {
	slices.SortFunc(pieces, func(a, b piece) int {
		if a.char != b.char {
			if a.char {
				return -1
			}
			return 1
		}
		return cmp.Or(-cmp.Compare(a.score, b.score), cmp.Compare(a.text, b.text))
	})
	pieces = pieces[:min(room, len(pieces))]
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(-cmp.Compare(a.score, b.score), cmp.Compare(a.text, b.text))
	})
	return pieces
}

// maximize computes new scores from expected counts and drops rarely used pieces. The digamma
// function instead of the logarithm favours frequent pieces, as a sparse prior does.
func maximize(pieces []piece, expected []float64) []piece {
	out := pieces[:0]
	kept := expected[:0]
	sum := 0.0
	for i, p := range pieces {
		e := expected[i]
		if e < minExpected {
			if !p.char {
				continue
			}
			e = minExpected
		}
		out = append(out, p)
		kept = append(kept, e)
		sum += e
	}
	logSum := digamma(sum)
	for i := range out {
		out[i].score = digamma(kept[i]) - logSum
	}
	return out
}

// digamma returns the derivative of the logarithm of the gamma function, by recurrence and its
// asymptotic series.
func digamma(x float64) float64 {
	result := 0.0
	for ; x < 7; x++ {
		result -= 1 / x
	}
	x -= 0.5
	xx := 1 / x
	xx2 := float64(xx * xx)
	xx4 := float64(xx2 * xx2)
	return result + math.Log(x) + float64(1.0/24*xx2) - float64(7.0/960*xx4) +
		float64(31.0/8064*float64(xx4*xx2)) - float64(127.0/30720*float64(xx4*xx4))
}

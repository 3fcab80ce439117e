package train

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	continuing = "##"
	// maxAlphabet is the number of characters, the most frequent ones, in a WordPiece vocabulary.
	maxAlphabet = 1000
)

func (t *Trainer) finishWordPiece(words []word) ([]byte, error) {
	v := newVocabulary(t.opts.SpecialTokens)
	chars := countChars(words)
	limit := min(len(chars), maxAlphabet, max(1, (t.opts.VocabSize-len(v.tokens))/4))
	t.unknown = chars[limit:]
	alphabet := make([]rune, limit)
	for i, c := range chars[:limit] {
		alphabet[i] = c.char
	}
	slices.Sort(alphabet)
	for _, c := range alphabet {
		v.add(string(c))
	}
	for _, c := range alphabet {
		v.add(continuing + string(c))
	}
	known := make(map[rune]bool, len(alphabet))
	for _, c := range alphabet {
		known[c] = true
	}
	l := newLearner()
	var symbols []uint32
	for _, w := range words {
		if utf8.RuneCountInString(w.text) > maxWordPieceChars {
			continue
		}
		symbols = symbols[:0]
		for i, c := range w.text {
			if !known[c] {
				continue
			}
			token := string(c)
			if i > 0 {
				token = continuing + token
			}
			symbols = append(symbols, v.add(token))
		}
		if len(symbols) > 0 {
			l.addWord(symbols, w.count)
		}
	}
	next := l.learn(int64(t.opts.MinFrequency), func() bool { return len(v.tokens) >= t.opts.VocabSize },
		func(left, right uint32) uint32 {
			return v.add(v.tokens[left] + strings.TrimPrefix(v.tokens[right], continuing))
		})
	t.noteMerges(len(v.tokens), next)

	norm := object{{"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", true},
		{"strip_accents", nil}, {"lowercase", t.opts.Lowercase}}
	model := object{{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"continuing_subword_prefix", continuing},
		{"max_input_chars_per_word", maxWordPieceChars}, {"vocab", byID(v.tokens)}}
	decoder := object{{"type", "WordPiece"}, {"prefix", continuing}, {"cleanup", true}}
	return writeFile(byID(t.opts.SpecialTokens), norm, object{{"type", "BertPreTokenizer"}}, t.bertTemplate(), decoder, model)
}

// bertTemplate puts [CLS] and [SEP] around a text if the vocabulary has both.
func (t *Trainer) bertTemplate() any {
	cls, sep := slices.Index(t.opts.SpecialTokens, "[CLS]"), slices.Index(t.opts.SpecialTokens, "[SEP]")
	if cls < 0 || sep < 0 {
		return nil
	}
	special := func(token string, segment int) object {
		return object{{"SpecialToken", object{{"id", token}, {"type_id", segment}}}}
	}
	sequence := func(name string, segment int) object {
		return object{{"Sequence", object{{"id", name}, {"type_id", segment}}}}
	}
	entry := func(token string, id int) object {
		return object{{"id", token}, {"ids", []any{id}}, {"tokens", []any{token}}}
	}
	return object{
		{"type", "TemplateProcessing"},
		{"single", []any{special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)}},
		{"pair", []any{special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0), sequence("B", 1),
			special("[SEP]", 1)}},
		{"special_tokens", object{{"[CLS]", entry("[CLS]", cls)}, {"[SEP]", entry("[SEP]", sep)}}},
	}
}

type charCount struct {
	char  rune
	count int64
}

// countChars counts the characters of words, the most frequent first, of equally frequent ones the lower.
func countChars(words []word) []charCount {
	counts := make(map[rune]int64)
	for _, w := range words {
		for _, c := range w.text {
			counts[c] += w.count
		}
	}
	chars := make([]charCount, 0, len(counts))
	for c, n := range counts {
		chars = append(chars, charCount{c, n})
	}
	slices.SortFunc(chars, func(a, b charCount) int {
		return cmp.Or(-cmp.Compare(a.count, b.count), cmp.Compare(a.char, b.char))
	})
	return chars
}

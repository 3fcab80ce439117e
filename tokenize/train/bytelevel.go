package train

import (
	"slices"

	"github.com/dsload/dsload/tokenize/internal/charclass"
)

// vocabulary holds the tokens by id while they are learned.
type vocabulary struct {
	tokens []string
	ids    map[string]uint32
	merges []string // left and right, with a space between: no token of a byte-level vocabulary has one
}

func newVocabulary(special []string) *vocabulary {
	v := &vocabulary{ids: make(map[string]uint32), merges: []string{}} // written as [] where there are none
	for _, s := range special {
		v.add(s)
	}
	return v
}

// add returns the id of a token and adds the token if it is new.
func (v *vocabulary) add(token string) uint32 {
	id, ok := v.ids[token]
	if !ok {
		id = uint32(len(v.tokens))
		v.ids[token] = id
		v.tokens = append(v.tokens, token)
	}
	return id
}

func (t *Trainer) finishByteLevel(words []word) ([]byte, error) {
	v := newVocabulary(t.opts.SpecialTokens)
	ofByte := byteIDs(v)
	l := newLearner()
	var symbols []uint32
	for _, w := range words {
		symbols = symbols[:0]
		for i := range len(w.text) {
			symbols = append(symbols, ofByte[w.text[i]])
		}
		l.addWord(symbols, w.count)
	}
	next := l.learn(int64(t.opts.MinFrequency), func() bool { return len(v.tokens) >= t.opts.VocabSize },
		func(left, right uint32) uint32 {
			a, b := v.tokens[left], v.tokens[right]
			v.merges = append(v.merges, a+" "+b)
			return v.add(a + b)
		})
	t.noteMerges(len(v.tokens), next)

	var norm any
	if t.opts.Lowercase {
		norm = object{{"type", "Lowercase"}}
	}
	return writeByteLevel(byID(t.opts.SpecialTokens), norm, t.opts.Split, false, byID(v.tokens), v.merges)
}

// writeByteLevel returns the tokenizer.json of a byte-level BPE. wholeWords is set if a word that is a token is not
// made of merges.
func writeByteLevel(special object, norm any, split string, wholeWords bool, vocab object, merges []string) ([]byte, error) {
	pre := object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}
	if split != "gpt2" {
		pre[3].value = false
		split := object{{"type", "Split"}, {"pattern", object{{"Regex", splits[split]}}},
			{"behavior", "Isolated"}, {"invert", false}}
		pre = object{{"type", "Sequence"}, {"pretokenizers", []any{split, pre}}}
	}
	byteLevel := object{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}}
	model := object{
		{"type", "BPE"}, {"dropout", nil}, {"unk_token", nil}, {"continuing_subword_prefix", nil},
		{"end_of_word_suffix", nil},
		{"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", wholeWords}, {"vocab", vocab},
		{"merges", merges},
	}
	return writeFile(special, norm, pre, byteLevel, byteLevel, model)
}

// byteIDs adds the characters of the byte-level alphabet in the order of their code points and returns the id
// of each byte.
func byteIDs(v *vocabulary) (ids [256]uint32) {
	chars := make([]string, len(ids))
	for b := range chars {
		chars[b] = charclass.ByteChar(byte(b))
	}
	for _, c := range slices.Sorted(slices.Values(chars)) {
		v.add(c)
	}
	for b, c := range chars {
		ids[b] = v.add(c)
	}
	return ids
}

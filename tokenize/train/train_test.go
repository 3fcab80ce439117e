package train

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize"
)

func learn(t *testing.T, o Options, lines []string) []byte {
	t.Helper()
	tr, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if err := tr.Add([]byte(l)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := tr.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func encoderOf(t *testing.T, data []byte) (*tokenize.Tokenizer, *tokenize.Encoder) {
	t.Helper()
	tok, err := tokenize.Parse(data, tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tok, tok.NewEncoder(tokenize.EncoderOptions{})
}

// smallText is enough for a few dozen merges in every family.
var smallText = strings.Split(strings.Repeat("low lower lowest; new newer newest, wide wider widest!\nthe lowest of the new ones isn't the widest 12 123 1234\nÉcole été über straße 東京 東京都\n", 20), "\n")

func TestFamiliesRoundTrip(t *testing.T) {
	for _, o := range []Options{
		{VocabSize: 330}, {VocabSize: 330, Split: "cl100k"}, {VocabSize: 330, Split: "o200k", Lowercase: true},
		{VocabSize: 330, Split: "qwen2", SpecialTokens: []string{"<s>", "</s>"}},
		{Family: WordPiece, VocabSize: 200}, {Family: WordPiece, VocabSize: 200, Lowercase: true},
		{Family: Unigram, VocabSize: 120}, {Family: Unigram, VocabSize: 120, Lowercase: true},
	} {
		data := learn(t, o, smallText)
		if again := learn(t, o, smallText); !bytes.Equal(data, again) {
			t.Errorf("%+v: two runs differ", o)
		}
		tok, enc := encoderOf(t, data)
		least := o.VocabSize * 2 / 5 // the text runs out of pairs
		if o.Family == "" {
			least = 310
		}
		if tok.VocabSize() > o.VocabSize || tok.VocabSize() < least {
			t.Errorf("%+v: %d tokens", o, tok.VocabSize())
		}
		for i, s := range o.withDefaults().SpecialTokens {
			if id, ok := tok.ID(s); !ok || int(id) != i {
				t.Errorf("%+v: special token %s has id %d, want %d", o, s, id, i)
			}
		}
		text := "the newest widest low lower"
		ids := enc.AppendTokens(nil, []byte(text))
		if len(ids) > 12 {
			t.Errorf("%+v: %d tokens for %q: nothing was learned", o, len(ids), text)
		}
		if got := string(tok.AppendText(nil, ids, tokenize.DecodeOptions{SkipSpecial: true})); got != text {
			t.Errorf("%+v: %q decodes as %q", o, text, got)
		}
	}
}

// TestMergeOrder checks counts and ties by hand: "ab" occurs four times, then "xy" and "cd" tie at
// three.
func TestMergeOrder(t *testing.T) {
	data := learn(t, Options{VocabSize: 260, SpecialTokens: []string{"<s>"}},
		[]string{"ab", "ab", "ab", "abxy", "xy", "xy", "cd", "cd", "cd"})
	want := `"merges":["a b","c d","x y"]`
	if !bytes.Contains(data, []byte(want)) {
		t.Errorf("%s not in …%s", want, data[max(0, len(data)-200):])
	}
}

// TestOverlappingPairs: in a run of one symbol, pairs overlap and must not be counted twice after a
// merge. Then (aa, a) and (aa, aa) tie.
func TestOverlappingPairs(t *testing.T) {
	data := learn(t, Options{VocabSize: 259, SpecialTokens: []string{"<s>"}}, []string{"aaaaa", "aaaaa", "aaaaa"})
	if want := `"merges":["a a","aa a"]`; !bytes.Contains(data, []byte(want)) {
		t.Errorf("%s not in …%s", want, data[max(0, len(data)-200):])
	}
}

// TestMemoryBound: many different words go through a small table; frequent ones survive, whatever
// came between.
func TestMemoryBound(t *testing.T) {
	tr, err := New(Options{VocabSize: 400, MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60000 {
		word := []byte{'k', byte('a' + i%26), byte('a' + i/26%26), byte('a' + i/676%26), byte('a' + i/17576%26)}
		if err := tr.Add(word); err != nil {
			t.Fatal(err)
		}
		if err := tr.Add([]byte("zebra")); err != nil {
			t.Fatal(err)
		}
		if tr.words.used > tr.opts.MaxMemory {
			t.Fatalf("%d bytes in use", tr.words.used)
		}
	}
	if s := tr.Stats(); s.Dropped == 0 || s.Words != 120000 {
		t.Errorf("%+v: the table never filled", s)
	}
	data, err := tr.Finish()
	if err != nil {
		t.Fatal(err)
	}
	tok, enc := encoderOf(t, data)
	if ids := enc.AppendTokens(nil, []byte("zebra")); len(ids) != 1 {
		t.Errorf("zebra is %d tokens of %d", len(ids), tok.VocabSize())
	}
	if _, err := tr.Finish(); err == nil {
		t.Error("finished twice")
	}
	if err := tr.Add(nil); err == nil {
		t.Error("text after the end")
	}
}

// TestUnknown: what has no token is what becomes the unknown one, where characters are more than the vocabulary has
// room for.
func TestUnknown(t *testing.T) {
	var text strings.Builder
	for i := range 26 {
		text.WriteString(strings.Repeat(string(rune('a'+i))+" ", i+1))
	}
	for family, unk := range map[Family]string{ByteLevelBPE: "", WordPiece: "[UNK]", Unigram: "<unk>"} {
		size := 20
		if family == ByteLevelBPE {
			size = 300
		}
		tr, err := New(Options{Family: family, VocabSize: size})
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Add([]byte(text.String())); err != nil {
			t.Fatal(err)
		}
		data, err := tr.Finish()
		if err != nil {
			t.Fatal(err)
		}
		tok, enc := encoderOf(t, data)
		unknown, _ := tok.ID(unk)
		chars, occurrences := 0, int64(0)
		for i := range 26 {
			if unk != "" && slices.Contains(enc.AppendTokens(nil, []byte{byte('a' + i)}), unknown) {
				chars, occurrences = chars+1, occurrences+int64(i+1)
			}
		}
		if c, n := tr.Unknown(); c != chars || n != occurrences || (chars > 0) != (unk != "") {
			t.Errorf("%s: %d characters and %d occurrences are said to be unknown, %d and %d are", family, c, n, chars, occurrences)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	for want, o := range map[string]Options{
		"Family lzw":     {Family: "lzw"},
		"Split gpt5":     {Split: "gpt5"},
		"only":           {Family: Unigram, Split: "gpt2"},
		"VocabSize 100":  {VocabSize: 100},
		"MaxMemory 1000": {MaxMemory: 1000},
		"twice":          {SpecialTokens: []string{"a", "a"}},
		"must include":   {Family: WordPiece, SpecialTokens: []string{"[PAD]"}},
		"MinFrequency":   {MinFrequency: -1},
		"VocabSize -3":   {VocabSize: -3},
	} {
		_, err := New(o)
		var option *OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	tr, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Finish(); err == nil {
		t.Error("learned from nothing")
	}
}

// TestUnusualText: no text makes training fail or write a file that cannot be read.
func TestUnusualText(t *testing.T) {
	for _, family := range []Family{ByteLevelBPE, WordPiece, Unigram} {
		for _, text := range []string{"\xff\xfe\x80", "\x00", strings.Repeat("a", 5000), "\u0301\u0301", " ",
			"\u2581\u2581 \u2581", "##a ##b", strings.Repeat("ab", 1000) + " " + strings.Repeat("é", 900),
			"\U0010ffff"} {
			tr, err := New(Options{Family: family, VocabSize: 300})
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Add([]byte(text)); err != nil {
				t.Fatal(err)
			}
			data, err := tr.Finish()
			if err != nil {
				if !strings.Contains(err.Error(), "no text") {
					t.Errorf("%s of %.20q: %v", family, text, err)
				}
				continue
			}
			encoderOf(t, data)
		}
	}
}

// TestFromRanks: each merge is the last one of its token, unused ids are taken, and a token that no merge makes is one
// where it is a whole word.
func TestFromRanks(t *testing.T) {
	tokens := make([][]byte, 256, 261)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	tokens = append(tokens, []byte("ab"), nil, []byte("abab"), []byte("xyz"))
	data, err := FromRanks(tokens, map[string]uint32{"<s>": 262}, "gpt2")
	if err != nil {
		t.Fatal(err)
	}
	if want := `"merges":["a b","ab ab"]`; !bytes.Contains(data, []byte(want)) {
		t.Errorf("%s not in …%s", want, data[max(0, len(data)-200):])
	}
	tok, err := tokenize.Parse(data, tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]uint32{"abab": {258}, "xyz": {259}, "xyzxyz": {'x', 'y', 'z', 'x', 'y', 'z'},
		"<s>ab": {262, 256}} {
		if got := tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if tok.VocabSize() != 263 {
		t.Error(tok.VocabSize())
	}
	if _, err := FromRanks(tokens, nil, "none"); err == nil {
		t.Error("an unknown split is taken")
	}
}

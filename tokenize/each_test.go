package tokenize

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// Texts that are encoded together have the ids, the error and the Verbatim that they have one by one.
func TestAppendEach(t *testing.T) {
	effort.OneGoroutine(t)
	replace := `{"added_tokens":[],"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"` + strings.Repeat("b", 2000) +
		`"},"model":{"type":"BPE","vocab":{"a":0,"b":1," ":2,"t":3,"h":4,"e":5},"merges":[]}}`
	files := map[string][]byte{
		"plain":    byteLevelFile(t, plainTokens, false, false),
		"strips":   byteLevelFile(t, strippingToken, false, false),
		"spaced":   byteLevelFile(t, plainTokens[:1], false, true),
		"nfc":      byteLevelFile(t, plainTokens, true, false),
		"too many": []byte(replace),
	}
	for _, name := range []string{"gpt2", "t5-small"} {
		files[name] = refdata.Read(t, "tokenizers/"+name+"/tokenizer.json")
	}
	words := []string{" ", "the", " the", "  ", "<s>", "<s> ", "<|endoftext|>", "é", "e\u0301", "\xff", "\x00", "a", "\n"}
	for name, file := range files {
		tok, err := Parse(file, Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		one, each := tok.NewEncoder(EncoderOptions{MaxNormalized: 1000}), tok.NewEncoder(EncoderOptions{MaxNormalized: 1000})
		r := rand.New(rand.NewPCG(4, 4))
		kinds, refused := map[bool]bool{}, 0
		for range effort.Of(20, 50, 500) {
			var texts []Text
			for range 1 + r.IntN(100) {
				var text strings.Builder
				for n := r.IntN(30); n > 0; n-- {
					text.WriteString(words[1+r.IntN(1+r.IntN(len(words)-1))])
				}
				texts = append(texts, Text{[]byte(text.String()), Piece{r.IntN(2) == 0, r.IntN(2) == 0}})
			}
			from, next := 1, 0
			got := each.AppendEach([]uint32{9}, texts, func(i int, dst []uint32) []uint32 {
				want := one.AppendPiece(nil, texts[i].Bytes, texts[i].Piece)
				if i != next || !slices.Equal(dst[from:], want) || each.Verbatim() != one.Verbatim() ||
					errors.Is(each.Err(), ErrExpansion) != errors.Is(one.Err(), ErrExpansion) {
					t.Fatalf("%s, text %d %q: %v %v, want %v %v", name, i, texts[i].Bytes, dst[from:], each.Err(), want, one.Err())
				}
				if kinds[one.Verbatim()] = true; one.Err() != nil {
					refused++
				}
				dst = append(dst, 5)
				from, next = len(dst), i+1
				return dst
			})
			if next != len(texts) || len(got) != from {
				t.Fatalf("%s: %d of %d texts, %d of %d ids", name, next, len(texts), from, len(got))
			}
		}
		if (refused > 0) != (name == "too many") || kinds[true] != (name != "t5-small" && name != "too many") {
			t.Errorf("%s: %d refused; verbatim: %v", name, refused, kinds)
		}
	}
}

package tokenize

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/effort"
	"github.com/dsload/dsload/tokenize/internal/known"
)

// TestIgnoredMembers reads members that Hugging Face's library ignores (asked of tokenizers 0.23.3,
// which refuses none but at the top): they change nothing, and a warning names them.
func TestIgnoredMembers(t *testing.T) {
	const extra = `"strange":[1]`
	for _, c := range []struct{ file, of string }{
		{`{"model":{"type":"BPE",%s"vocab":{"a":0},"merges":[]}}`, "the BPE model"},
		{`{"normalizer":{%s"type":"NFC"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "NFC"},
		{`{"normalizer":{"type":"Sequence","normalizers":[{%s"type":"Lowercase"}]},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "Lowercase"},
		{`{"pre_tokenizer":{%s"type":"Whitespace"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "Whitespace"},
		{`{"decoder":{%s"type":"Fuse"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "Fuse"},
		{`{"post_processor":{%s"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"a","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],` +
			`"pair":[],"special_tokens":{"a":{"id":"a","ids":[0],"tokens":["a"]}}},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "TemplateProcessing"},
	} {
		plain, err := Parse(fmt.Appendf(nil, c.file, ""), Options{})
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Parse(fmt.Appendf(nil, c.file, extra+","), Options{})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		want := `field "strange" of ` + c.of + ` ignored`
		if !slices.ContainsFunc(tok.Warnings(), func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("%s: warnings %q, want one that begins %q", c.file, tok.Warnings(), want)
		}
		if !slices.Equal(tok.Prefix(), plain.Prefix()) || len(plain.Warnings()) > 0 {
			t.Errorf("%s: prefix %d and warnings %q, want %d", c.file, tok.Prefix(), plain.Warnings(), plain.Prefix())
		}
	}
}

// TestUnknownTokenIsAdded reads models whose unknown token is only among the added tokens.
func TestUnknownTokenIsAdded(t *testing.T) {
	const added = `"added_tokens":[{"id":9,"content":"<u>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],`
	for _, model := range []string{
		`{"type":"WordLevel","unk_token":"<u>","vocab":{"b":0,"a":1}}`,
		`{"type":"WordPiece","unk_token":"<u>","continuing_subword_prefix":"##","max_input_chars_per_word":9,"vocab":{"b":0,"a":1}}`,
	} {
		for _, rest := range []string{
			`"pre_tokenizer":{"type":"Whitespace"}`,
			`"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"}`,
		} {
			tok, err := Parse([]byte(`{`+added+rest+`,"model":`+model+`}`), Options{})
			if err != nil {
				t.Error(err)
				continue
			}
			ids := tok.NewEncoder(EncoderOptions{}).AppendTokens(nil, []byte("a <u> b zz a"))
			if want := []uint32{1, 2, 0, 2, 1}; !slices.Equal(ids, want) {
				t.Errorf("%s: ids %d, want %d", model, ids, want)
			}
			if tok.Special().UNK != 2 || !strings.Contains(fmt.Sprint(tok.Warnings()), "only an added token") {
				t.Errorf("%s: unknown token %d, warnings %q", model, tok.Special().UNK, tok.Warnings())
			}
		}
	}
}

// rankFile writes n ranks: all bytes, then words that they make.
func rankFile(n int) []byte {
	var b strings.Builder
	for i := range n {
		token := []byte{byte(i)}
		if i >= 256 {
			token = fmt.Appendf(nil, "w%x", i)
		}
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString(token), i)
	}
	return []byte(b.String())
}

// TestKnownRanks recognizes vocabularies by their number of ranks, with the pattern and the special
// tokens they were published with.
func TestKnownRanks(t *testing.T) {
	effort.OneGoroutine(t)
	for _, c := range []struct {
		ranks   int
		pattern string
		tokens  map[string]uint32
		size    int
	}{
		{128000, "llama3", map[string]uint32{"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001,
			"<|reserved_special_token_0|>": 128002,
			"<|start_header_id|>":          128006, "<|end_header_id|>": 128007, "<|reserved_special_token_4|>": 128008,
			"<|eot_id|>":                   128009,
			"<|reserved_special_token_5|>": 128010, "<|reserved_special_token_250|>": 128255}, 128256},
		{163584, "kimi", map[string]uint32{"[BOS]": 163584, "[EOS]": 163585, "<|im_end|>": 163586,
			"<|im_middle|>": 163601, "<|reserved_token_163589|>": 163589,
			"[UNK]": 163838, "[PAD]": 163839}, 163840},
	} {
		tok, err := Parse(rankFile(c.ranks), Options{Pattern: "", Special: nil})
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Details().Describe().Components.PreTokenizer; got != c.pattern || tok.VocabSize() != c.size ||
			len(tok.Warnings()) != 1 {
			t.Errorf("%d ranks: pattern %s, %d ids, warnings %q", c.ranks, got, tok.VocabSize(), tok.Warnings())
		}
		for token, id := range c.tokens {
			if got, ok := tok.ID(token); !ok || got != id {
				t.Errorf("%d ranks: token %s has id %d, want %d", c.ranks, token, got, id)
			}
		}
		named, err := Parse(rankFile(c.ranks), Options{Pattern: c.pattern, Special: nil})
		if err != nil || named.Fingerprint() != tok.Fingerprint() || len(named.Warnings()) != 0 {
			t.Errorf("pattern %s named: %v, warnings %q", c.pattern, err, named.Warnings())
		}
	}
}

// TestPatterns splits a vocabulary of another size by name and by regular expression.
func TestPatterns(t *testing.T) {
	data := rankFile(3000)
	const text = "Hello w100w100 w200's 12345 漢字かな漢 ÉCOLE don't\n\n  x\t y"
	pieces := func(pattern string) []string {
		tok, err := Parse(data, Options{Pattern: pattern, Special: map[string]uint32{}})
		if err != nil {
			t.Fatalf("pattern %.40s: %v", pattern, err)
		}
		var out []string
		for _, id := range tok.NewEncoder(EncoderOptions{}).AppendTokens(nil, []byte(text)) {
			token, _ := tok.Token(id)
			out = append(out, token)
		}
		if got := strings.Join(out, ""); got != text {
			t.Errorf("pattern %.40s: decoded %q, want %q", pattern, got, text)
		}
		return out
	}
	for name, expression := range map[string]string{"gpt2": known.GPT2, "cl100k": known.Llama3,
		"llama3": known.Llama3, "o200k": known.O200K, "kimi": known.Kimi} {
		// In a group the expression is none of those that the engine knows, so that the
		// pre-tokenizer cuts.
		if a, b := pieces(name), pieces("(?:"+expression+")"); !slices.Equal(a, b) {
			t.Errorf("pattern %s gives %q, its expression %q", name, a, b)
		}
	}
	if a, b := pieces("cl100k"), pieces(known.TiktokenCL100K); !slices.Equal(a, b) {
		t.Errorf("cl100k as tiktoken writes it gives %q, want %q", b, a)
	}
	if got := pieces("w|\\d+"); !slices.Contains(got, "1") || slices.Contains(got, "w100") {
		t.Errorf("an expression that cuts inside tokens gives %q", got)
	}
	for pattern, word := range map[string]string{"": "name the pattern", "gpt3": `"gpt3" is not known`, "(a": "(a",
		"(?<n>a)\\k<n>": "not supported"} {
		if _, err := Parse(data, Options{Pattern: pattern, Special: nil}); !errors.Is(err, ErrPattern) ||
			!strings.Contains(err.Error(), word) {
			t.Errorf("pattern %q: error %v, want ErrPattern with %q", pattern, err, word)
		}
	}
}

// TestMaxMemory reads files under limits: each is refused with an error that wraps ErrTooLarge,
// before the tables are built, and read where the limit is high enough.
func TestMaxMemory(t *testing.T) {
	effort.OneGoroutine(t)
	dir := t.TempDir()
	vocab := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"w%x":%d`, i, i)
		}
		return b.String()[1:]
	}
	addedTokens := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"id":%d,"content":"<|%x|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":%t,"special":true}`, i+1, i, i%2 == 0)
		}
		return b.String()[1:]
	}
	const bpe = `"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`
	for name, c := range map[string]struct {
		data         string
		small, large int64
	}{
		"spaces":     {strings.Repeat(" ", 8<<20) + "{}", 4 << 20, 0},
		"vocabulary": {`{"model":{"type":"BPE","vocab":{` + vocab(100000) + `},"merges":[]}}`, 6 << 20, 64 << 20},
		"words": {`{"model":{"type":"WordLevel","unk_token":"w1","vocab":{` + vocab(100000) + `}}}`, 4 << 20,
			64 << 20},
		"added": {`{"added_tokens":[` + addedTokens(30000) + `],` + bpe + `}`, 8 << 20, 64 << 20},
		"ranks": {string(rankFile(100000)), 8 << 20, 64 << 20},
		"normalizer": {`{"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("b", 5000000) + `"},` + bpe +
			`}`, 32 << 20, 0},
		"content": {`{"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"` +
			strings.Repeat("b", 70000) + `"},` + bpe + `}`, 32 << 20, 0},
		"pattern": {`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + strings.Repeat("ab|", 20000) +
			`c"},"behavior":"Isolated","invert":false},` + bpe + `}`, 32 << 20, 0},
		"prefix": {`{"model":{"type":"BPE","continuing_subword_prefix":"` + strings.Repeat("b", 70000) +
			`","vocab":{"a":0},"merges":[]}}`, 32 << 20, 0},
		"expansion": {`{"added_tokens":[{"id":1,"content":"aaaa","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":true}],"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"` + strings.Repeat("b", 60000) + `"},` + bpe + `}`, 32 << 20, 0},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.data), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := LoadWith(path, Options{MaxMemory: c.small, Pattern: "gpt2"})
		if !errors.Is(err, ErrTooLarge) || len(err.Error()) > 500 {
			t.Errorf("%s under %d MiB: error %.300v, want ErrTooLarge", name, c.small>>20, err)
		}
		if c.large == 0 {
			continue
		}
		if _, err := LoadWith(path, Options{MaxMemory: c.large, Pattern: "gpt2"}); err != nil {
			t.Errorf("%s under %d MiB: %v", name, c.large>>20, err)
		}
	}
}

// TestMaxNormalized bounds what a normalizer makes of a text, in one segment and in many.
func TestMaxNormalized(t *testing.T) {
	file := func(normalizer string) string {
		return `{"added_tokens":[{"id":9,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
			"normalizer":` + normalizer + `,"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`
	}
	thousand := strings.Repeat("a", 1000)
	replace := `{"type":"Replace","pattern":{"String":"a"},"content":"` + thousand + `"}`
	for name, c := range map[string]struct{ normalizer, short, long string }{
		"chain":    {`{"type":"Sequence","normalizers":[` + replace + `,` + replace + `]}`, "b", "a"},
		"replace":  {replace, "aaa", strings.Repeat("a", 100)},
		"segments": {replace, "a<s>a<s>a", strings.Repeat("a<s>", 100)},
		"prepend":  {`{"type":"Prepend","prepend":"` + thousand + `"}`, "b<s>b", strings.Repeat("b<s>", 100)},
		"empty": {`{"type":"Replace","pattern":{"Regex":"x*"},"content":"` + thousand + `"}`, "b",
			strings.Repeat("b", 100)},
		"forms": {`{"type":"NFKC"}`, "\ufdfa", strings.Repeat("\ufdfa", 10000)},
		"byte": {`{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"ByteLevel"},`, 30) +
			`{"type":"NFC"}]}`, "b", strings.Repeat("\xc3\xa9", 30000)},
	} {
		tok, err := Parse([]byte(file(c.normalizer)), Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		const limit = 64 << 10
		enc, free := tok.NewEncoder(EncoderOptions{MaxNormalized: limit}), tok.NewEncoder(EncoderOptions{})
		ids := []uint32{7}
		if got := enc.AppendTokens(ids, []byte(c.short)); enc.Err() != nil ||
			!slices.Equal(got, free.AppendTokens([]uint32{7}, []byte(c.short))) {
			t.Errorf("%s: a short text gives %d ids and the error %v", name, len(got), enc.Err())
		}
		if got := enc.AppendTokens(ids, []byte(c.long)); !errors.Is(enc.Err(), ErrExpansion) ||
			!slices.Equal(got, ids) {
			t.Errorf("%s: a long text gives %d ids and the error %v, want ErrExpansion", name, len(got), enc.Err())
		}
		if enc.AppendTokens(nil, []byte(c.short)); enc.Err() != nil {
			t.Errorf("%s: the error stays: %v", name, enc.Err())
		}
	}
}

package tokenize

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dsload/dsload/tokenize/internal/refdata"
)

// besideTexts are those of testdata/gen/beside.py.
var besideTexts = []string{
	"hi<|end|> there <|start|>x", "  a <|end|>  <|end|>\n<mask> b<|start|> ", "x FOO<X>bar <X> foo  </s> <s> <pad> [PAD]",
	"in a wordFOOword FOO. there", "<image><video> <|end|><|end|>",
}

// TestBeside compares folders whose files name tokens beside the tokenizer's own with what AutoTokenizer makes of them, and
// then the tokenizers with their copies.
func TestBeside(t *testing.T) {
	data, err := os.ReadFile("testdata/beside.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var bases []json.RawMessage
	changed := 0
	for line := range bytes.Lines(data) {
		var row struct {
			Tokenizer json.RawMessage
			Base      int
			Files     map[string]json.RawMessage
			IDs       [][]uint32
			Special   map[string]*int
			Size      int
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if row.Tokenizer != nil {
			bases = append(bases, row.Tokenizer)
			continue
		}
		folder := fstest.MapFS{"m/tokenizer.json": {Data: bases[row.Base]}}
		for name, file := range row.Files {
			folder["m/"+name] = &fstest.MapFile{Data: file}
		}
		tok, err := LoadFS(folder, "m")
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name, file := tok.Details().File()
		again, err := LoadFS(fstest.MapFS{name: {Data: file}}, ".")
		if err != nil || again.Fingerprint() != tok.Fingerprint() {
			t.Fatalf("%s: the copy has another fingerprint; %v", line, err)
		}
		for i, text := range besideTexts {
			if got := tok.Encode(text); !slices.Equal(got, row.IDs[i]) {
				t.Errorf("%s: %q: ids %d, want %d", line, text, got, row.IDs[i])
			}
			if got := again.Encode(text); !slices.Equal(got, row.IDs[i]) {
				t.Errorf("%s: %q: ids of the copy %d, want %d", line, text, got, row.IDs[i])
			}
		}
		if tok.VocabSize() != row.Size {
			t.Errorf("%s: %d ids, want %d", line, tok.VocabSize(), row.Size)
		}
		if !bytes.Equal(file, bases[row.Base]) {
			changed++
		}
		checkRoles(t, tok, row.Special)
	}
	if len(bases) == 0 || changed < 50 {
		t.Errorf("%d folders add tokens", changed)
	}
}

// checkRoles compares the special tokens that a folder names.
func checkRoles(t *testing.T, tok *Tokenizer, want map[string]*int) {
	t.Helper()
	for _, w := range wellKnown {
		role := strings.TrimSuffix(w.key, "_token")
		if id := want[role]; id != nil && *w.field(&tok.special) != *id {
			t.Errorf("%s is %d, want %d", role, *w.field(&tok.special), *id)
		}
	}
}

// TestBesideOthers checks tokens beside files that have no place for them, and their copies.
func TestBesideOthers(t *testing.T) {
	const config = `{"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "<|end|>", "unk_token": null,
		"added_tokens_decoder": {
		"0": {"content": "<unk>", "special": true}, "1": {"content": "<s>", "special": true},
		"N": {"content": "<|end|>", "special": true}, "M": {"content": "<|start|>", "lstrip": true, "special": true}}}`
	llama, err := os.ReadFile(refdata.Path(t, "tokenizers/llama2.model"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, first, second string
		file                []byte
		o                   Options
	}{
		{"tokenizer.model", "32000", "32001", llama, Options{}},
		{"x.tiktoken", "299", "310", rankFile(299), Options{Pattern: "gpt2", Special: map[string]uint32{}}},
	} {
		folder := fstest.MapFS{"m/" + c.name: {Data: c.file},
			"m/tokenizer_config.json": {Data: []byte(strings.NewReplacer("N", c.first, "M", c.second).Replace(config))}}
		tok, err := loadFS(folder, "m", "", c.o)
		if err != nil {
			t.Fatal(err)
		}
		end, ok := tok.ID("<|end|>")
		start, _ := tok.ID("<|start|>")
		plain, err := loadFS(fstest.MapFS{c.name: {Data: c.file}}, ".", "", c.o)
		if err != nil {
			t.Fatal(err)
		}
		if !ok || tok.Special().EOS != int(end) || plain.Fingerprint() == tok.Fingerprint() {
			t.Errorf("%s: <|end|> is %d, eos %d", c.name, end, tok.Special().EOS)
		}
		want := slices.Concat(plain.Encode("hi"), []uint32{end, start}, tok.Encode("x<|end|>")[1:])
		if got := tok.Encode("hi<|end|>  <|start|><|end|>"); !slices.Equal(got, want) {
			t.Errorf("%s: ids %d, want %d", c.name, got, want)
		}
		if got := tok.Decode(want); got != "hi<|end|><|start|><|end|>" {
			t.Errorf("%s: text %q", c.name, got)
		}
		_, file := tok.Details().File()
		_, copied := tok.Details().Config()
		o := c.o
		o.Config = copied
		again, err := Parse(file, o)
		if err != nil || again.Fingerprint() != tok.Fingerprint() || !slices.Equal(again.Encode("a<|end|> b"), tok.Encode("a<|end|> b")) {
			t.Errorf("%s: the copy is another tokenizer; %v", c.name, err)
		}
	}
}

// TestRolesAreSpecial checks that an ordinary token does not get a role by its name.
func TestRolesAreSpecial(t *testing.T) {
	const file = `{"added_tokens":[{"id":3,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false},
		{"id":4,"content":"<eos>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
		"model":{"type":"WordLevel","vocab":{"<s>":0,"a":1,"<unk>":2},"unk_token":"<unk>"}}`
	for config, want := range map[string]Special{
		``:                        {BOS: -1, EOS: 4, UNK: 2},
		`{"eos_token": "</s>"}`:   {BOS: -1, EOS: 3, UNK: 2},
		`{"eos_token": null}`:     {BOS: -1, EOS: -1, UNK: 2},
		`{"bos_token": "<s>"}`:    {BOS: 0, EOS: 4, UNK: 2},
		`{"eos_token": "<none>"}`: {BOS: -1, EOS: 5, UNK: 2},
	} {
		o := Options{}
		if config != "" {
			o.Config = []byte(config)
		}
		tok, err := Parse([]byte(file), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Special(); got.BOS != want.BOS || got.EOS != want.EOS || got.UNK != want.UNK {
			t.Errorf("%s: %+v, want %+v", config, got, want)
		}
		if named := tok.Details(); !named.IsReserved(3) || named.IsReserved(1) || strings.Contains(config, "none") != (len(tok.Warnings()) > 0) {
			t.Errorf("%s: %v", config, tok.Warnings())
		}
	}
	broken, err := Parse([]byte(file), Options{Config: []byte(`{"added_tokens_decoder": {"9": {"content": "x"}}, "eos_token": "x"`)})
	if err != nil || broken.VocabSize() != 5 || len(broken.Warnings()) != 1 {
		t.Errorf("a broken configuration: %v, %d ids, warnings %q", err, broken.VocabSize(), broken.Warnings())
	}
	// Ranks have no id for a token that is only named: the next one may be something else to the model.
	tok, err := loadFS(fstest.MapFS{"x.tiktoken": {Data: rankFile(300)}, "tokenizer_config.json": {Data: []byte(`{"eos_token": "<|end|>"}`)}},
		".", "", Options{Pattern: "gpt2", Special: map[string]uint32{"<|endoftext|>": 300}})
	if err != nil || tok.Special().EOS != -1 {
		t.Errorf("%+v, %v", maps.Collect(maps.All(tok.named)), err)
	}
}

package tokenize

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dsload/dsload/tokenize/internal/pipeline"
)

// exercise encodes and decodes with a tokenizer that came from a fuzzer: no panic, equal ids for
// pieces, ids in range, and widths of verbatim texts that add up.
func exercise(t *testing.T, tok *Tokenizer) {
	enc, known := tok.NewEncoder(EncoderOptions{CacheBytes: -1}), map[uint32]string{}
	for _, s := range []string{"", " ", "Hello,  world! 123 <s>x", "é漢\u0301👍\x00\r\n▁ab", "\xff\xc3(bad) a b"} {
		ids := enc.AppendTokens(nil, []byte(s))
		for _, id := range ids {
			if int(id) >= tok.VocabSize() {
				t.Errorf("id %d of %d", id, tok.VocabSize())
			}
		}
		tok.AppendText(nil, ids, DecodeOptions{SkipSpecial: true})
		checkVerbatim(t, tok, enc, known, s)
		n := tok.SafeCut([]byte(s))
		if n < 0 || n > len(s) {
			t.Fatalf("SafeCut %d of %d bytes", n, len(s))
		}
		if n > 0 {
			cut := enc.AppendPiece(enc.AppendPiece(nil, []byte(s[:n]), Piece{First: true}), []byte(s[n:]),
				Piece{Last: true})
			if !slices.Equal(cut, ids) {
				t.Errorf("%q cut at %d: %v, want %v", s, n, cut, ids)
			}
		}
	}
	tok.Details().Describe()
}

func FuzzParseJSON(f *testing.F) {
	data, err := os.ReadFile("testdata/huggingface/small.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var row struct{ Tokenizer json.RawMessage }
		if err := json.Unmarshal(line, &row); err != nil {
			f.Fatal(err)
		}
		if len(row.Tokenizer) < 16<<10 {
			f.Add([]byte(row.Tokenizer))
		}
	}
	for _, s := range smallFiles {
		f.Add([]byte(s))
	}
	f.Add(byteLevelFile(f, plainTokens, true, false))
	f.Add(byteLevelFile(f, strippingToken, false, true))
	f.Fuzz(func(t *testing.T, data []byte) {
		if tok, err := Parse(data, Options{}); err == nil {
			exercise(t, tok)
			checkPlain(t, data, []byte("a ab b \u00e9\u6f22 A <unk>  \u2581x\n"))
		}
	})
}

// FuzzBeside reads any tokenizer_config.json: the tokenizer's copy gives its ids.
func FuzzBeside(f *testing.F) {
	f.Add([]byte(`{"added_tokens_decoder": {"4": {"content": "ab", "lstrip": true}, "1": {"content": "x", "special": true}}, "eos_token": "x"}`))
	f.Add([]byte(`{"additional_special_tokens": ["b", {"content": "y", "normalized": true}], "pad_token": {"content": "z"}, "unk_token": null}`))
	f.Add([]byte(`{"extra_special_tokens": {"image_token": "<i>"}, "tokenizer_class": "LlamaTokenizer", "legacy": true}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		for _, file := range [][]byte{[]byte(smallFiles[0]), []byte(smallFiles[3]), rankFile(300)} {
			o := Options{Config: config, Pattern: "gpt2"}
			tok, err := Parse(file, o)
			if err != nil {
				continue
			}
			exercise(t, tok)
			_, copied := tok.Details().File()
			if _, o.Config = tok.Details().Config(); o.Config == nil {
				o.Config = []byte("{}")
			}
			again, err := Parse(copied, o)
			if err != nil || again.Fingerprint() != tok.Fingerprint() || again.VocabSize() != tok.VocabSize() {
				t.Fatalf("%q: the copy is another tokenizer: %v", config, err)
			}
			for _, text := range []string{"a ab <i>x y", "zab  b"} {
				if got, want := again.Encode(text), tok.Encode(text); !slices.Equal(got, want) {
					t.Fatalf("%q: %q: the copy gives %d, not %d", config, text, got, want)
				}
			}
		}
	})
}

// checkPlain encodes a text with a file's engine and with the plain models that the same Spec
// describes: the ids are equal.
func checkPlain(t *testing.T, file, text []byte) {
	t.Helper()
	s, err := readSpec(file, Options{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids [2][]uint32
	for i, o := range []pipeline.Options{{}, {Plain: true}} {
		p, err := pipeline.New(s, o)
		if err != nil {
			if i == 0 {
				t.Fatal(err)
			}
			return // a model that only its engine computes
		}
		ids[i], _ = p.NewEncoder(1<<16).AppendPiece(nil, text, true, true, 0)
	}
	if !slices.Equal(ids[0], ids[1]) {
		t.Errorf("%.300s: %q: the engine gives %d, the plain models %d", file, text, ids[0], ids[1])
	}
}

// smallFiles are minimal tokenizer.json files of each kind of model.
var smallFiles = []string{
	`{"model":{"vocab":{"a":0,"b":1,"ab":2,"Ġ":3},"merges":["a b"]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true}}`,
	`{"model":{"type":"BPE","vocab":{"<unk>":0,"▁":1,"a":2,"▁a":3},"merges":[["▁","a"]],"unk_token":"<unk>","fuse_unk":true},"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"added_tokens":[{"id":0,"content":"<unk>","single_word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":true}]}`,
	`{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-1.5],["a",-2],["▁a",-2.25]]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}}`,
	`{"model":{"unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##b":2}},"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"}}`,
	`{"model":{"unk_token":"u","vocab":{"u":0,"a":1}},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+|(?=a)"},"behavior":"Removed","invert":false},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"u","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"u":{"id":"u","ids":[0],"tokens":["u"]}}},"decoder":{"type":"Strip","content":" ","start":1,"stop":1}}`,
}

func FuzzParseSentencePiece(f *testing.F) {
	files, _ := filepath.Glob("testdata/sentencepiece/*.model")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if tok, err := Parse(data, Options{}); err == nil {
			exercise(t, tok)
		}
	})
}

func FuzzParseTiktoken(f *testing.F) {
	f.Add([]byte("IQ== 0\nIg== 1\nISI= 2\n"), "gpt2")
	f.Add([]byte("YQ== 0\r\nYg== 5\n\nYWI= 7"), "o200k")
	f.Fuzz(func(t *testing.T, data []byte, pattern string) {
		if tok, err := Parse(data, Options{Pattern: pattern, Special: map[string]uint32{"<s>": 9}}); err == nil {
			exercise(t, tok)
		}
	})
}

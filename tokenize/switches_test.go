package tokenize

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestSwitches: what tokenizer_config.json says otherwise than the tokenizer's own file is named, and nothing else.
func TestSwitches(t *testing.T) {
	const bert = `"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,` +
		`"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"}`
	const space = `"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},` +
		`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}]}`
	const meta = `"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true}`
	for _, c := range []struct{ parts, config, want string }{
		{bert, `"do_lower_case":false`, "do_lower_case: false, and the tokenizer's own file says true"},
		{bert, `"strip_accents":false`, "strip_accents: false"},
		{bert, `"tokenize_chinese_chars":false`, "tokenize_chinese_chars: false"},
		{bert, `"do_lower_case":true,"strip_accents":null,"tokenize_chinese_chars":true,"add_prefix_space":true`, ""},
		{space, `"add_prefix_space":false,"do_lower_case":true`, "add_prefix_space: false"},
		{space, `"add_prefix_space":true,"split_special_tokens":false`, ""},
		{`"normalizer":{"type":"Prepend","prepend":"▁"}`, `"add_prefix_space":false`, "add_prefix_space: false"},
		{meta, `"add_prefix_space":true`, "add_prefix_space: true"},
		{meta, `"add_prefix_space":false`, ""}, {meta, `"add_prefix_space":null`, ""},
		{meta, `"split_special_tokens":true`, "split_special_tokens: true, without effect"},
	} {
		tok, err := LoadFS(fstest.MapFS{
			"m/tokenizer.json": {Data: []byte(`{"added_tokens":[],` + c.parts +
				`,"model":{"type":"WordLevel","vocab":{"a":0,"u":1},"unk_token":"u"}}`)},
			"m/tokenizer_config.json": {Data: []byte(`{` + c.config + `}`)}}, "m")
		if err != nil {
			t.Fatalf("%s: %v", c.parts, err)
		}
		got := strings.Join(tok.Warnings(), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Count(got, " says ") > 2 {
			t.Errorf("%s: %q, want %q", c.config, got, c.want)
		}
	}
}

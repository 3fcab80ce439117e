package tokenize

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// TestForeign checks that vocabularies of other programs are refused by their names, as files and in folders.
func TestForeign(t *testing.T) {
	const tekken = `{"config": {"pattern": "a"}, "vocab": [{"rank": 0, "token_bytes": "AA=="}], "special_tokens": []}`
	files := fstest.MapFS{
		"m/tekken.json":         {Data: []byte(tekken)},
		"m/params.json":         {Data: []byte("{}")},
		"r/rwkv_vocab_v2.txt":   {Data: []byte("1 b'\\x00' 1\n2 ' of' 3\n")},
		"r/words_and_spaces":    {Data: []byte("257 '    ' 4\n")},
		"r/double_quoted":       {Data: []byte("257 \"don't\" 5\r\n")},
		"ranks/tokenizer.model": {Data: []byte("YQ== 0\n")},
	}
	for name, says := range map[string]string{"m": "Tekken", "m/tekken.json": "Tekken", "r": "RWKV", "r/rwkv_vocab_v2.txt": "RWKV",
		"r/words_and_spaces": "RWKV", "r/double_quoted": "RWKV"} {
		_, err := LoadFS(files, name)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadFS(files, "ranks"); err == nil || strings.Contains(err.Error(), "RWKV") {
		t.Errorf("ranks: %v", err)
	}
}

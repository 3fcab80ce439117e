package tokenizers

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/refdata"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

const addedText = "It's  the\n\n  year 12345: déjà vu 漢字 🙂\r\n\tcode(); <x>inside<y> end  <x>\n"

// folderOf writes an extended tokenizer.
func folderOf(t *testing.T, e *Extended) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range e.Files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func special(names ...string) (tokens []AddedToken) {
	for _, name := range names {
		tokens = append(tokens, AddedToken{Content: name, Special: true})
	}
	return tokens
}

// A built-in tokenizer becomes a tokenizer.json with the same ids, and new tokens follow all of its own.
func TestAddToBuiltin(t *testing.T) {
	names := builtin.Names()
	for _, name := range names[:effort.Of(2, len(names), len(names))] {
		old, err := Open(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Add(name, special("<x>", "<y>"), Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		added, err := tokenize.Load(folderOf(t, e))
		if err != nil {
			t.Fatal(name, err)
		}
		n := uint32(old.VocabSize())
		var want []uint32
		for part := range strings.SplitSeq(strings.ReplaceAll(addedText, "<y>", "<x>"), "<x>") {
			want = append(append(want, old.Encode(part)...), n)
		}
		want = want[:len(want)-1]
		want[slices.Index(want, n)+len(old.Encode("inside"))+1] = n + 1
		if got := added.Encode(addedText); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if added.VocabSize() != old.VocabSize()+2 || added.Special().EOS != old.Special().EOS || len(added.Warnings()) > 0 {
			t.Errorf("%s: %d ids, eos %d, %q", name, added.VocabSize(), added.Special().EOS, added.Warnings())
		}
		if text := added.Decode(added.Encode(addedText)); text != addedText {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// wordTokenizer writes a tokenizer with these words, and returns its folder.
func wordTokenizer(t *testing.T, vocab, config string) string {
	t.Helper()
	dir := t.TempDir()
	file := `{"version": "1.0", "added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false,
		"normalized": false, "special": true}], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
		"post_processor": null, "decoder": null, "model": {"type": "WordPiece", "unk_token": "[UNK]",
		"continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ` + vocab + `}}`
	for name, data := range map[string]string{"tokenizer.json": file, "tokenizer_config.json": config} {
		if data == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAddToFolder(t *testing.T) {
	dir := wordTokenizer(t, `{"[UNK]": 0, "a": 1, "tool": 2}`, `{"tokenizer_class": "BertTokenizer", "model_max_length": 1000000000000000019884624838656,
		"added_tokens_decoder": {"0": {"content": "[UNK]", "special": true}}, "chat_template": "<b>"}`)
	if err := os.Mkdir(filepath.Join(dir, "additional_chat_templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "additional_chat_templates", "tool_use.jinja"), []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := append(special("tool"), AddedToken{Content: "<n>", Special: true, LStrip: true})
	e, err := Add(filepath.Join(dir, "tokenizer.json"), tokens, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Tokenizer.Encode("a tool  <n> a"); !slices.Equal(got, []uint32{1, 2, 3, 1}) { // a word keeps its id
		t.Error(got)
	}
	if string(e.Files["additional_chat_templates/tool_use.jinja"]) != "t" {
		t.Errorf("%q", e.Files)
	}
	var config struct {
		Class    string                `json:"tokenizer_class"`
		Length   json.Number           `json:"model_max_length"`
		Decoder  map[string]AddedToken `json:"added_tokens_decoder"`
		Template string                `json:"chat_template"`
	}
	if err := json.Unmarshal(e.Files["tokenizer_config.json"], &config); err != nil {
		t.Fatal(err)
	}
	if config.Class != "BertTokenizer" || config.Length != "1000000000000000019884624838656" || config.Template != "<b>" ||
		len(config.Decoder) != 3 || config.Decoder["3"] != tokens[1] || !strings.Contains(string(e.Files["tokenizer_config.json"]), "<n>") {
		t.Errorf("%+v", config)
	}
}

func TestCannotAdd(t *testing.T) {
	plain := wordTokenizer(t, `{"[UNK]": 0, "a": 1}`, "")
	for _, c := range []struct {
		name, kind, want string
		tokens           []AddedToken
	}{
		{plain, fault.Usage, "has it already, with the id 0; leave it out", special("[UNK]")},
		{plain, fault.Usage, "given twice", special("<x>", "<x>")},
		{wordTokenizer(t, `{"[UNK]": 0, "a": 1, "b": 3}`, ""), fault.Corrupt, `the next one, 3, is that of "b"`, special("<x>")},
		{wordTokenizer(t, `{"[UNK]": 0, "a": 1}`, "[]"), fault.Corrupt, "tokenizer_config.json", special("<x>")},
		{filepath.Join(plain, "none"), fault.Usage, "cannot be read", special("<x>")},
	} {
		_, err := Add(c.name, c.tokens, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != c.kind {
			t.Errorf("%v: %v, want %s", c.tokens, err, c.want)
		}
	}
	for _, name := range []string{"gpt2.tiktoken", "llama2.model"} {
		_, err := Add(refdata.Path(t, "tokenizers/"+name), special("<x>"), Options{})
		var e *fault.Error
		if !errors.As(err, &e) || fault.OptionOf(err) != "tokenizer" || !strings.Contains(err.Error(), "save_pretrained") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

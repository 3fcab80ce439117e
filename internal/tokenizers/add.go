package tokenizers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
	"github.com/dsload/dsload/tokenize/train"
)

// AddedToken is a token to add, as AddedToken of Hugging Face's tokenizers.
type AddedToken struct {
	Content    string `json:"content"`
	LStrip     bool   `json:"lstrip"`
	Normalized bool   `json:"normalized"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
	Special    bool   `json:"special"`
}

// Extended is a tokenizer with added tokens, and the files of a folder that transformers loads as it.
type Extended struct {
	Tokenizer *tokenize.Tokenizer
	Files     map[string][]byte
}

// besideAdded lists the files that go with a tokenizer whose tokens are all in its tokenizer.json.
var besideAdded = []string{shardfile.TokenizerConfigName, "special_tokens_map.json", "chat_template.j*",
	"additional_chat_templates/*.jinja"}

// Add adds tokens to a tokenizer as tokenizers' add_special_tokens does: a token of the model's keeps its id, others get
// the next free ones.
func Add(name string, tokens []AddedToken, o Options) (*Extended, error) {
	t, err := Open(name, o)
	if err != nil {
		return nil, err
	}
	if err := checkAdded(t, tokens); err != nil {
		return nil, err
	}
	file, data := t.Details().File()
	dir := ""
	if isBuiltin(name) {
		v, err := builtin.Ranks(t.Name())
		if err != nil {
			return nil, err
		}
		if data, err = train.FromRanks(v.Tokens, v.Special, v.Split); err != nil {
			return nil, err
		}
	} else if file != shardfile.TokenizerName {
		return nil, fault.BadOption("tokenizer", name, "only a tokenizer.json has a place for tokens, and this is a %s "+
			"file; give a built-in tokenizer (%s), or the tokenizer.json of the model, which "+
			"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OTHER) of transformers writes of a SentencePiece model",
			filepath.Ext(file), strings.Join(builtin.Names(), ", "))
	} else if dir, err = locate(name, o); err != nil {
		return nil, err
	} else if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	outside, err := json.Marshal(map[string]any{"extra_special_tokens": tokens})
	if err != nil {
		return nil, err
	}
	added, err := tokenize.Parse(data, tokenize.Options{Name: t.Name(), Config: outside})
	if err != nil {
		return nil, fmt.Errorf("add tokens to %s: %w", name, err)
	}
	for _, token := range tokens {
		id, _ := added.ID(token.Content)
		if other, taken := t.Token(id); taken && other != token.Content {
			return nil, fault.Kindf(fault.Corrupt, "add tokens to %s: the ids of its vocabulary have gaps, so that the next "+
				"one, %d, is that of %q; number its tokens without gaps", name, id, other)
		}
	}
	e := &Extended{Tokenizer: added, Files: map[string][]byte{}}
	if _, e.Files[shardfile.TokenizerName] = added.Details().File(); dir != "" {
		if err := e.copyBeside(dir); err != nil {
			return nil, err
		}
	}
	return e, e.configure(t, tokens)
}

// checkAdded returns an error for tokens that cannot be added.
func checkAdded(t *tokenize.Tokenizer, tokens []AddedToken) error {
	for i, token := range tokens {
		id, known := t.ID(token.Content)
		switch {
		case slices.Contains(tokens[:i], token):
			return fault.Kindf(fault.Usage, "add token %s: it is given twice; give it once", token.Content)
		case known && t.Details().IsReserved(id):
			return fault.Kindf(fault.Usage, "add token %s: %s has it already, with the id %d; leave it out", token.Content,
				t.Name(), id)
		}
	}
	return nil
}

// copyBeside reads the files next to a tokenizer.json.
func (e *Extended) copyBeside(dir string) error {
	files := os.DirFS(dir)
	for _, pattern := range besideAdded {
		names, err := fs.Glob(files, pattern)
		for _, name := range names {
			if err == nil {
				e.Files[name], err = fs.ReadFile(files, name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// configure completes the tokenizer_config.json, or makes one of what the tokenizer's own file says.
func (e *Extended) configure(old *tokenize.Tokenizer, tokens []AddedToken) error {
	config, special := map[string]any{}, old.Special()
	if data := e.Files[shardfile.TokenizerConfigName]; data != nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&config); err != nil {
			return fault.Kindf(fault.Corrupt, "read %s: %v", shardfile.TokenizerConfigName, err)
		}
	} else {
		config["clean_up_tokenization_spaces"] = false
		for key, id := range map[string]int{"bos_token": special.BOS, "eos_token": special.EOS, "pad_token": special.PAD,
			"unk_token": special.UNK, "cls_token": special.CLS, "sep_token": special.SEP, "mask_token": special.MASK} {
			if token, ok := old.Token(uint32(max(id, 0))); ok && id >= 0 {
				config[key] = token
			}
		}
	}
	if config["tokenizer_class"] == nil { // which transformers would look for in the model's config.json
		config["tokenizer_class"] = "PreTrainedTokenizerFast"
	}
	if byID, ok := config["added_tokens_decoder"].(map[string]any); ok {
		for _, token := range tokens {
			id, _ := e.Tokenizer.ID(token.Content)
			byID[strconv.Itoa(int(id))] = token
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(config)
	e.Files[shardfile.TokenizerConfigName] = b.Bytes()
	return err
}

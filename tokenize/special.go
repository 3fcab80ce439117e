package tokenize

import (
	"errors"
	"io/fs"
	"path"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Special holds the ids of well-known special tokens, -1 for those that a tokenizer lacks.
type Special struct {
	BOS  int `json:"bos"`
	EOS  int `json:"eos"`
	PAD  int `json:"pad"`
	UNK  int `json:"unk"`
	CLS  int `json:"cls"`
	SEP  int `json:"sep"`
	MASK int `json:"mask"`
}

func noSpecial() Special { return Special{-1, -1, -1, -1, -1, -1, -1} }

// wellKnown lists the special tokens with their keys in the files that name them, and their usual names in order of
// preference.
var wellKnown = []struct {
	key   string
	field func(*Special) *int
	names []string
}{
	{"bos_token", func(s *Special) *int { return &s.BOS },
		[]string{"<s>", "<|begin_of_text|>", "<bos>", "[BOS]", "<|startoftext|>"}},
	{"eos_token", func(s *Special) *int { return &s.EOS },
		[]string{"</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>", "[EOS]"}},
	{"pad_token", func(s *Special) *int { return &s.PAD }, []string{"<pad>", "[PAD]", "<|pad|>"}},
	{"unk_token", func(s *Special) *int { return &s.UNK }, []string{"<unk>", "[UNK]"}},
	{"cls_token", func(s *Special) *int { return &s.CLS }, []string{"[CLS]", "<cls>"}},
	{"sep_token", func(s *Special) *int { return &s.SEP }, []string{"[SEP]", "<sep>"}},
	{"mask_token", func(s *Special) *int { return &s.MASK }, []string{"[MASK]", "<mask>"}},
}

// findWellKnown looks up by name what is still missing.
func (t *Tokenizer) findWellKnown() {
	for _, w := range wellKnown {
		f := w.field(&t.special)
		for _, name := range w.names {
			if id, ok := t.ID(name); ok && *f < 0 {
				*f = int(id)
			}
		}
	}
}

// findSpecial finds the special tokens from the model, the post-processor and well-known names.
func (t *Tokenizer) findSpecial(s *spec.Spec) {
	t.special.UNK = spec.UnknownID(s.Model)
	if s.Around.CLS >= 0 {
		t.special.CLS, t.special.SEP = s.Around.CLS, s.Around.SEP
	}
	t.findWellKnown()
	if split, ok := firstSplit(s); ok && split == known.GPT2 && t.special.BOS < 0 {
		t.special.BOS = t.special.EOS // GPT-2 uses one token for both
	}
}

// firstSplit returns the pattern that splits text for a model of ranks.
func firstSplit(s *spec.Spec) (pattern string, ok bool) {
	if _, ok := s.Model.(*spec.Ranks); !ok {
		return "", false
	}
	split, ok := s.PreTokenizer[0].(pretokenize.Split)
	return split.Pattern.Text, ok
}

// readSpecial reads special_tokens_map.json and tokenizer_config.json next to a tokenizer; they
// take precedence. A file that cannot be read gives only a warning, since the ids of text do not
// depend on it.
func (t *Tokenizer) readSpecial(fsys fs.FS, dir string) {
	for _, name := range []string{"special_tokens_map.json", "tokenizer_config.json"} {
		data, err := readRegular(fsys, path.Join(dir, name), maxConfigBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = t.specialFrom(data)
		}
		if err != nil {
			t.warnings = append(t.warnings, name+" ignored: "+err.Error())
		}
	}
}

// maxConfigBytes bounds each file that readSpecial reads.
const maxConfigBytes = 16 << 20

func (t *Tokenizer) specialFrom(data []byte) error {
	s, err := jsonx.NewScanner(data)
	if err != nil {
		return err
	}
	fields := map[string]*int{}
	for _, w := range wellKnown {
		fields[w.key] = w.field(&t.special)
	}
	return s.Object(func(key []byte) error {
		to := fields[string(key)]
		if to == nil {
			return s.Skip()
		}
		v, err := s.Value(100)
		if err != nil {
			return err
		}
		text := v.Text
		if v.Kind == '{' {
			text = v.Get("content").Text
		}
		if id, ok := t.ID(text); ok && text != "" {
			*to = int(id)
		}
		return nil
	})
}

package tokenize

import (
	"slices"

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

// findWellKnown looks up by name what is still missing: among the special tokens, since an ordinary one of that name
// is a part of texts, as the </s> of HTML is.
func (t *Tokenizer) findWellKnown() {
	for _, w := range wellKnown {
		f := w.field(&t.special)
		for _, name := range w.names {
			if id, ok := t.ID(name); ok && *f < 0 && t.reserved(id, true) {
				*f = int(id)
			}
		}
	}
}

// reserved reports whether a token stands for something other than a part of texts: it is an added token (a special one,
// if special is set), a control piece, or one that the post-processor adds.
func (t *Tokenizer) reserved(id uint32, special bool) bool {
	if content, ok := t.tokens.addedR[id]; ok && (!special || t.tokens.special[content]) {
		return true
	}
	if pieces, ok := t.decoder.(spec.JoinPieces); ok && int64(id) < int64(len(pieces.Kinds)) {
		switch pieces.Kinds[id] {
		case spec.Control, spec.Unknown:
			return true
		case spec.UserDefined:
			return !special
		}
	}
	return slices.Contains(t.around.Prefix, id) || slices.Contains(t.around.Suffix, id)
}

// nameSpecial gives the special tokens the ids of those that the files beside the tokenizer name: no other token has
// their role, where the vocabulary lacks them.
func (t *Tokenizer) nameSpecial(named map[string]string) {
	t.named = named
	for _, w := range wellKnown {
		name, said := named[w.key]
		id, known := t.ID(name)
		switch {
		case said && name != "" && known:
			*w.field(&t.special) = int(id)
		case said && (name != "" || w.key == "bos_token" || w.key == "eos_token"):
			*w.field(&t.special) = -1
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
	if _, ok := s.Model.(*spec.Ranks); ok && t.special.BOS < 0 {
		if split, ok := s.PreTokenizer[0].(pretokenize.Split); ok && split.Pattern.Text == known.GPT2 {
			t.special.BOS = t.special.EOS // GPT-2 uses one token for both
		}
	}
}

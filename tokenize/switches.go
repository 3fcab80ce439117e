package tokenize

import (
	"fmt"
	"slices"

	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// switches are the settings of a tokenizer_config.json by which classes of transformers change what the tokenizer's own
// file says. does reports whether a tokenizer does so by its file, and ok whether it has the part that is meant.
var switches = []struct {
	key  string
	does func(*spec.Spec) (does, ok bool)
}{
	{"do_lower_case", byNormalizer(func(b normalize.Bert) bool { return b.Lowercase })},
	{"strip_accents", byNormalizer(func(b normalize.Bert) bool { return b.StripAccents })},
	{"tokenize_chinese_chars", byNormalizer(func(b normalize.Bert) bool { return b.HandleChineseChars })},
	{"add_prefix_space", func(s *spec.Spec) (does, ok bool) {
		for _, c := range s.PreTokenizer {
			switch c := c.(type) {
			case pretokenize.ByteLevel:
				return c.PrefixSpace, true
			case pretokenize.Metaspace:
				return c.Prepend != pretokenize.PrependNever, true
			}
		}
		return slices.ContainsFunc(s.Normalizer, isPrepend), slices.ContainsFunc(s.Normalizer, isPrepend)
	}},
}

func isPrepend(c normalize.Component) bool { _, ok := c.(normalize.Prepend); return ok }

func byNormalizer(does func(normalize.Bert) bool) func(*spec.Spec) (does, ok bool) {
	return func(s *spec.Spec) (bool, bool) {
		for _, c := range s.Normalizer {
			if b, ok := c.(normalize.Bert); ok {
				return does(b), true
			}
		}
		return false, false
	}
}

// splitSpecial is the setting by which special tokens in a text are text.
const splitSpecial = "split_special_tokens"

// unfollowed are the warnings about settings beside a tokenizer that its own file contradicts: the ids are the file's.
func unfollowed(s *spec.Spec, set map[string]bool) (warnings []string) {
	for _, w := range switches {
		if does, ok := w.does(s); ok {
			if want, said := set[w.key]; said && want != does {
				warnings = append(warnings, fmt.Sprintf("%s says %s: %v, and the tokenizer's own file says %v, which the ids "+
					"follow; for the other ids, write the file again with save_pretrained of transformers", configName, w.key, want, does))
			}
		}
	}
	if set[splitSpecial] {
		warnings = append(warnings, fmt.Sprintf("%s says %s: true, without effect here: a special token in a text is one "+
			"token; take such tokens out of texts in which they do not belong", configName, splitSpecial))
	}
	return warnings
}

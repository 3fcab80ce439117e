package work

import (
	"bytes"
	"slices"

	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/tokenize"
)

// A text that a chat template or a tokenizer wrote begins with a control token: one of this tokenizer, or of another
// one, which this one would cut into pieces.

// ControlToken matches a control token as most chat templates write them.
var ControlToken = lazy.Regexp(`<[|｜][^<>|｜\s'"{}]{1,40}[|｜]>`)

// openers are control tokens that others begin texts with.
var openers = []string{"<s>", "<bos>", "<start_of_turn>", "[INST]"}

// maxOpener is the length of the longest control token that is looked for.
const maxOpener = 64

// rendered reports whether a text begins with a control token, and whether with one that the tokenizer lacks.
func (w *Worker) rendered(text []byte) (yes, foreign bool) {
	if len(text) == 0 || text[0] != '<' && text[0] != '[' {
		return false, false
	}
	token := string(text[:1+bytes.IndexAny(text[:min(len(text), maxOpener)], ">]")])
	if id, ok := w.Tokenizer.ID(token); ok && IsSpecial(w.Tokenizer, id) {
		return true, false
	}
	foreign = token != "" && (slices.Contains(openers, token) || ControlToken().FindString(token) == token)
	return foreign, foreign
}

// IsSpecial reports whether an id is a special token, which is left out of the text that ids stand for.
func IsSpecial(t *tokenize.Tokenizer, id uint32) bool {
	return len(t.AppendText(nil, []uint32{id}, tokenize.DecodeOptions{SkipSpecial: true})) == 0
}

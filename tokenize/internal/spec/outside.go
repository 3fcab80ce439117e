package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsload/dsload/tokenize/internal/added"
)

// Outside is what the files beside a tokenizer's own say about its tokens.
type Outside struct {
	Tokens []AddedToken // in the order in which transformers adds them

	// Class is the tokenizer_class, and Legacy its legacy. They count for a SentencePiece model.
	Class  string
	Legacy bool
}

// AddedToken is an added token as a file lists it, the tokenizer's own or one beside it. Its members but the last three
// are those of added_tokens_decoder.
type AddedToken struct {
	Content    string `json:"content"`
	LStrip     bool   `json:"lstrip"`
	Normalized bool   `json:"normalized"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
	Special    bool   `json:"special"`

	ID        int64 `json:"-"` // -1 if the file gives none
	Overrides bool  `json:"-"` // replaces what the tokenizer's file says of a token with this content
	Yields    bool  `json:"-"` // gives way to what the tokenizer's file says of this id, or of this content with a higher one
}

// Sought returns the token as it is searched for.
func (t AddedToken) Sought(id uint32) added.Token {
	return added.Token{Content: []byte(t.Content), ID: id, SingleWord: t.SingleWord, LStrip: t.LStrip, RStrip: t.RStrip}
}

// Patch replaces a part of a file.
type Patch struct {
	From, To int
	Text     []byte
}

// Apply returns the changed file.
func (p *Patch) Apply(data []byte) []byte {
	if p == nil || p.To > len(data) {
		return data
	}
	return slices.Concat(data[:p.From], p.Text, data[p.To:])
}

// keepsPieces reports whether a class gives an added token the next free id where its own is that of a piece. Others
// take it for the piece's new name.
func (o *Outside) keepsPieces() bool {
	switch o.Class {
	case "", "PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend":
		return false
	}
	return true
}

// Complete adds tokens to ranks or a SentencePiece model, whose files have no place for them. Ranks take the ids that
// the files give; for a model they are given as transformers gives them, one after the other.
func (s *Spec) Complete(o *Outside, mem *Meter) error {
	if o == nil {
		return nil
	}
	table := s.Model.Table()
	_, ranks := s.Model.(*Ranks)
	ids, next := map[string]uint32{}, uint32(table.Len())
	for _, a := range s.Added {
		ids[a.Content], next = a.ID, max(next, a.ID+1)
	}
	changed := false
	decoder := map[string]AddedToken{}
	for _, t := range o.Tokens {
		if err := mem.Take(AddedTokenBytes+2*int64(len(t.Content)), "the added tokens"); err != nil {
			return err
		}
		beyond := t.ID >= int64(table.Len())
		id, known := ids[t.Content]
		if inTable, ok := table.ID([]byte(t.Content)); !known && ok {
			id = inTable
		} else if known && (!ranks || !beyond || t.ID == int64(id)) {
			if !t.Overrides || id < uint32(table.Len()) {
				continue
			}
		} else if t.ID >= 0 && (ranks && beyond || !ranks && !beyond && !o.keepsPieces()) {
			id = uint32(t.ID)
		} else if ranks && t.ID < 0 {
			continue // the next free id may be one that the model has for something else
		} else {
			id = next
			s.unlisted(t, id)
		}
		if s.replace(t, id) {
			changed = true
		}
		ids[t.Content], next = id, max(next, id+1)
		decoder[strconv.Itoa(int(id))] = t
	}
	if !changed {
		return nil
	}
	return s.describe(o, decoder)
}

// unlisted warns of a token whose id is not the one of its file.
func (s *Spec) unlisted(t AddedToken, id uint32) {
	if t.ID >= 0 && t.ID != int64(id) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("added token %q has id %d, not %d as the file says", t.Content, id, t.ID))
	} else if t.ID < 0 {
		s.Unlisted = append(s.Unlisted, fmt.Sprintf("%s (%d)", t.Content, id))
	}
}

// replace adds a token in place of those with its content or id. It reports whether anything changed.
func (s *Spec) replace(t AddedToken, id uint32) bool {
	raw := t.Sought(id)
	entry := Added{Content: t.Content, ID: id, Special: t.Special, Decoded: t.Content}
	for i, a := range s.Added {
		if a == entry && raw.Equal(s.Raw[i]) {
			return false
		}
	}
	for i := len(s.Added) - 1; i >= 0; i-- { // Raw has the tokens of Added, one by one
		if s.Added[i].Content == t.Content || s.Added[i].ID == id {
			s.Added, s.Raw = slices.Delete(s.Added, i, i+1), slices.Delete(s.Raw, i, i+1)
		}
	}
	s.Added, s.Raw = append(s.Added, entry), append(s.Raw, raw)
	return true
}

// describe sets Config and takes it into the fingerprint.
func (s *Spec) describe(o *Outside, decoder map[string]AddedToken) (err error) {
	config := struct {
		Decoder map[string]AddedToken `json:"added_tokens_decoder"`
		Class   string                `json:"tokenizer_class,omitempty"`
		Legacy  bool                  `json:"legacy,omitempty"`
	}{decoder, o.Class, o.Legacy}
	if s.Config, err = json.MarshalIndent(config, "", "  "); err != nil {
		return err
	}
	h := NewHasher("completed")
	h.WriteString(s.Fingerprint)
	h.Write(s.Config)
	s.Fingerprint = h.String()
	return nil
}

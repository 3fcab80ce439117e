package hf

import (
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// addedToken is an entry of added_tokens.
type addedToken struct {
	id                                              uint32
	content                                         string
	singleWord, lstrip, rstrip, normalized, special bool

	anyID bool // no file gives it an id
}

// readAdded reads the list of added tokens.
func readAdded(s *jsonx.Scanner, mem *spec.Meter) ([]addedToken, error) {
	var list []addedToken
	if s.Null() {
		return nil, nil
	}
	err := s.Array(func() error {
		var t addedToken
		seen := 0
		err := s.Object(func(key []byte) (err error) {
			flag := func(to *bool) { *to, err = s.Bool(); seen++ }
			switch string(key) {
			case "id":
				var id uint64
				id, err = s.Uint(spec.MaxID)
				t.id = uint32(id)
				seen++
			case "content":
				var b []byte
				b, err = s.String()
				t.content = string(b)
				seen++
			case "single_word":
				flag(&t.singleWord)
			case "lstrip":
				flag(&t.lstrip)
			case "rstrip":
				flag(&t.rstrip)
			case "normalized":
				flag(&t.normalized)
			case "special":
				flag(&t.special)
			default:
				err = s.Skip()
			}
			return err
		})
		if err == nil && seen < 7 {
			err = s.Errorf("added token %q lacks a field", t.content)
		}
		if err == nil {
			err = mem.Take(spec.AddedTokenBytes+2*int64(len(t.content)), "the added tokens")
		}
		list = append(list, t)
		return err
	})
	return list, err
}

// addTokens gives the added tokens their ids, as Hugging Face does when it loads a file: the
// model's id if it knows the token, else the next free one. The file's id must agree.
func (b *builder) addTokens() error {
	table := b.model.table
	ids := map[string]uint32{}
	byID := map[uint32]int{} // the last of several with the same id counts
	next := uint32(b.model.count)
	for i, a := range b.added {
		if a.content == "" {
			continue
		}
		id, ok := ids[a.content]
		if !ok {
			id, ok = table.ID([]byte(a.content))
		}
		if !ok {
			id = next
			next++
		}
		if a.anyID && int(id) >= b.model.count {
			b.spec.Unlisted = append(b.spec.Unlisted, fmt.Sprintf("%s (%d)", a.content, id))
		}
		if a.anyID {
			b.added[i].id, b.added[i].anyID = id, false
		} else if id != a.id {
			b.warn("added token %q has id %d, not %d as the file says", a.content, id, a.id)
		}
		ids[a.content] = id
		byID[id] = i
		b.spec.Added = append(b.spec.Added, spec.Added{Content: a.content, ID: id, Special: a.special,
			Decoded: a.content})
	}
	steps := normalize.Unroll(b.spec.Normalizer)
	// Of several, Hugging Face takes whichever its hash table lists first; here it is the first in
	// the file.
	seen := map[string]string{}
	at := 0 // index in spec.Added
	for i, a := range b.added {
		if a.content == "" {
			continue
		}
		entry := &b.spec.Added[at]
		at++
		if byID[entry.ID] != i {
			continue
		}
		if err := b.searchFor(a, entry, steps, seen); err != nil {
			return err
		}
	}
	return nil
}

// searchFor adds a token to those that are searched for: by its normal form if it is searched for
// in normalized text.
func (b *builder) searchFor(a addedToken, entry *spec.Added, steps normalize.Sequence, seen map[string]string) error {
	token := added.Token{Content: []byte(a.content), ID: entry.ID, SingleWord: a.singleWord, LStrip: a.lstrip,
		RStrip: a.rstrip}
	if !a.normalized {
		b.spec.Raw = append(b.spec.Raw, token)
		return nil
	}
	edges := normalize.Edges{First: true, Last: true, Limit: maxText}
	text := steps.Apply(&b.scratch, token.Content, &edges)
	if edges.Over {
		return spec.TooLargef("added token %.80q: normalized, it has more than %d bytes", a.content, maxText)
	}
	if err := b.mem.Take(3*int64(len(text)), "the added tokens"); err != nil {
		return err
	}
	if string(text) != a.content {
		token.Content = append([]byte(nil), text...)
		entry.Decoded = string(text)
	}
	if other, ok := seen[string(token.Content)]; ok {
		b.warn("added token %q is never found: normalized, it equals %q", a.content, other)
		return nil
	}
	seen[string(token.Content)] = a.content
	b.spec.Normalized = append(b.spec.Normalized, token)
	return nil
}

package hf

import (
	"bytes"
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/jsonx"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// readAdded reads the list of added tokens.
func readAdded(s *jsonx.Scanner, mem *spec.Meter) ([]spec.AddedToken, error) {
	var list []spec.AddedToken
	if s.Null() {
		return nil, nil
	}
	err := s.Array(func() error {
		var t spec.AddedToken
		seen := 0
		err := s.Object(func(key []byte) (err error) {
			flag := func(to *bool) { *to, err = s.Bool(); seen++ }
			switch string(key) {
			case "id":
				var id uint64
				id, err = s.Uint(spec.MaxID)
				t.ID = int64(id)
				seen++
			case "content":
				var b []byte
				b, err = s.String()
				t.Content = string(b)
				seen++
			case "single_word":
				flag(&t.SingleWord)
			case "lstrip":
				flag(&t.LStrip)
			case "rstrip":
				flag(&t.RStrip)
			case "normalized":
				flag(&t.Normalized)
			case "special":
				flag(&t.Special)
			default:
				err = s.Skip()
			}
			return err
		})
		if err == nil && seen < 7 {
			err = s.Errorf("added token %q lacks a field", t.Content)
		}
		if err == nil {
			err = mem.Take(spec.AddedTokenBytes+2*int64(len(t.Content)), "the added tokens")
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
		if a.Content == "" {
			continue
		}
		id, ok := ids[a.Content]
		if !ok {
			id, ok = table.ID([]byte(a.Content))
		}
		if !ok {
			id = next
			next++
		}
		if a.ID < 0 && int(id) >= b.model.count {
			b.spec.Unlisted = append(b.spec.Unlisted, fmt.Sprintf("%s (%d)", a.Content, id))
		}
		if a.ID < 0 {
			b.added[i].ID = int64(id)
		} else if int64(id) != a.ID {
			b.warn("added token %q has id %d, not %d as the file says", a.Content, id, a.ID)
		}
		ids[a.Content] = id
		byID[id] = i
		b.spec.Added = append(b.spec.Added, spec.Added{Content: a.Content, ID: id, Special: a.Special,
			Decoded: a.Content})
	}
	steps := normalize.Unroll(b.spec.Normalizer)
	// Of several, Hugging Face takes whichever its hash table lists first; here it is the first in
	// the file.
	seen := map[string]string{}
	at := 0 // index in spec.Added
	for i, a := range b.added {
		if a.Content == "" {
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
func (b *builder) searchFor(a spec.AddedToken, entry *spec.Added, steps normalize.Sequence, seen map[string]string) error {
	token := a.Sought(entry.ID)
	if !a.Normalized {
		b.spec.Raw = append(b.spec.Raw, token)
		return nil
	}
	edges := normalize.Edges{First: true, Last: true, Limit: maxText}
	text := steps.Apply(&b.scratch, token.Content, &edges)
	if edges.Over {
		return spec.TooLargef("added token %.80q: normalized, it has more than %d bytes", a.Content, maxText)
	}
	if err := b.mem.Take(3*int64(len(text)), "the added tokens"); err != nil {
		return err
	}
	if string(text) != a.Content {
		token.Content = bytes.Clone(text)
		entry.Decoded = string(text)
	}
	if other, ok := seen[string(token.Content)]; ok {
		b.warn("added token %q is never found: normalized, it equals %q", a.Content, other)
		return nil
	}
	seen[string(token.Content)] = a.Content
	b.spec.Normalized = append(b.spec.Normalized, token)
	return nil
}

package hf

import (
	"bytes"
	"encoding/json"

	"github.com/dsload/dsload/tokenize/internal/spec"
)

// complete adds the tokens that files beside this one name, as transformers does after it has read this one.
func (f *file) complete(o *spec.Outside, mem *spec.Meter) error {
	if o == nil {
		return nil
	}
	at, ids := map[string]int{}, map[int64]bool{}
	for i, a := range f.added {
		at[a.Content], ids[a.ID] = i, true
	}
	for _, t := range o.Tokens {
		a := t
		a.Overrides, a.Yields = false, false
		i, known := at[t.Content]
		switch {
		case t.Yields && (ids[t.ID] || known && t.ID < f.added[i].ID):
		case !known:
			if err := mem.Take(spec.AddedTokenBytes+2*int64(len(t.Content)), "the added tokens"); err != nil {
				return err
			}
			at[t.Content] = len(f.added)
			f.added, f.completed = append(f.added, a), true
		case t.Overrides:
			a.ID = f.added[i].ID
			f.completed = f.completed || a != f.added[i]
			f.added[i] = a
		}
	}
	return nil
}

// patch returns the change that makes the completed list of added tokens part of the file, nil for none.
func (f *file) patch(data []byte) (*spec.Patch, error) {
	if !f.completed {
		return nil, nil
	}
	list := make([]any, len(f.added))
	for i, a := range f.added {
		list[i] = struct {
			ID uint32 `json:"id"`
			spec.AddedToken
		}{uint32(a.ID), a}
	}
	text, err := json.Marshal(list)
	p := &spec.Patch{From: f.listFrom, To: f.listTo, Text: text}
	if f.listTo == 0 { // a file without a list
		p.From = bytes.IndexByte(data, '{') + 1
		p.To, p.Text = p.From, []byte(`"added_tokens":`+string(text)+",")
	}
	return p, err
}

package spmodel

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charsmap"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/spec"
)

// Normalizer is SentencePiece's normalizer. At each position it takes a user-defined symbol or the
// longest entry of the character map; it collapses spaces, replaces them with U+2581 and adds a
// dummy space at one end.
type Normalizer struct {
	Map         *charsmap.Map     // nil for none
	DummySpace  bool              // add_dummy_prefix
	ExtraSpaces bool              // remove_extra_whitespaces
	SpaceSuffix bool              // treat_whitespace_as_suffix
	Once        bool              // the dummy space comes before the first segment alone
	user        map[byte][][]byte // user-defined symbols by their first byte, longest first
}

// normalizer returns the normalizer of a model.
func (m *Model) normalizer() (*Normalizer, error) {
	n := m.Normalizer
	if len(m.Charsmap) > 0 {
		var err error
		if n.Map, err = charsmap.Parse(m.Charsmap); err != nil {
			return nil, err
		}
	}
	for _, p := range m.Pieces {
		if p.Kind == spec.UserDefined {
			if n.user == nil {
				n.user = map[byte][][]byte{}
			}
			n.user[p.Text[0]] = append(n.user[p.Text[0]], bytes.Clone(p.Text))
		}
	}
	for _, list := range n.user {
		slices.SortFunc(list, func(a, b []byte) int { return len(b) - len(a) })
	}
	return &n, nil
}

// Trivial reports whether n only replaces spaces with U+2581 and puts a dummy space before the
// text.
func (n *Normalizer) Trivial() bool {
	return n.Map == nil && !n.ExtraSpaces && !n.SpaceSuffix
}

// MapsSpaces reports whether an entry of the character map may contain a space.
func (n *Normalizer) MapsSpaces() bool { return n.Map != nil && n.Map.HasSpaces() }

// step normalizes the first characters of text; it returns the result and their length in text.
func (n *Normalizer) step(text []byte) (to []byte, length int) {
	for _, u := range n.user[text[0]] {
		if bytes.HasPrefix(text, u) {
			return u, len(u)
		}
	}
	if n.Map != nil {
		if to, length = n.Map.Longest(text); length > 0 {
			return to, length
		}
	}
	_, length = utf8.DecodeRune(text)
	return text[:length], length
}

// Append implements normalize.Step.
func (n *Normalizer) Append(dst, src []byte, e *normalize.Edges) []byte {
	if n.ExtraSpaces && e.First {
		for len(src) > 0 {
			to, length := n.step(src)
			if string(to) != " " {
				break
			}
			src = src[length:]
		}
	}
	if len(src) == 0 {
		return dst
	}
	from := len(dst)
	if n.DummySpace && !n.SpaceSuffix && e.First && (!n.Once || e.Zero > 0) {
		dst = append(dst, spec.Metaspace...)
	}
	afterSpace := n.ExtraSpaces && e.First
	for len(src) > 0 {
		to, length := n.step(src)
		for afterSpace && len(to) > 0 && to[0] == ' ' {
			to = to[1:]
		}
		for _, c := range to {
			if c == ' ' {
				dst = append(dst, spec.Metaspace...)
			} else {
				dst = append(dst, c)
			}
		}
		if len(to) > 0 {
			afterSpace = n.ExtraSpaces && to[len(to)-1] == ' '
		}
		src = src[length:]
	}
	if n.ExtraSpaces && e.Last {
		for bytes.HasSuffix(dst[from:], []byte(spec.Metaspace)) {
			dst = dst[:len(dst)-len(spec.Metaspace)]
		}
	}
	if n.DummySpace && n.SpaceSuffix && e.Last {
		dst = append(dst, spec.Metaspace...)
	}
	return dst
}

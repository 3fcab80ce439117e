package normalize

import (
	"unicode/utf8"

	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/charsmap"
	"github.com/dsload/dsload/tokenize/wellformed"
)

// Origin is the part of the original text that a byte comes from.
type Origin struct{ Start, End int }

// Aligned is text with the origin of each of its bytes, as Hugging Face's NormalizedString keeps
// them.
type Aligned struct {
	Text    []byte
	Origins []Origin
}

// Original aligns text with itself: each byte comes from its whole character. Each ill-formed part
// becomes one U+FFFD, as in wellformed.Append, or stays as it is if raw is set.
func Original(text []byte, raw bool) Aligned {
	var a Aligned
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		char := text[i : i+n]
		if r == utf8.RuneError && n == 1 && !raw {
			n, char = wellformed.IllFormed(text[i:]), []byte("\uFFFD")
		}
		a.add(char, Origin{i, i + n})
		i += n
	}
	return a
}

func (a *Aligned) add(text []byte, from Origin) {
	a.Text = append(a.Text, text...)
	for range text {
		a.Origins = append(a.Origins, from)
	}
}

// Slice returns a part of the text.
func (a Aligned) Slice(start, end int) Aligned {
	return Aligned{a.Text[start:end], a.Origins[start:end]}
}

// Origin returns the part of the original that a part of the text comes from.
func (a Aligned) Origin(start, end int) Origin {
	if start >= end {
		return Origin{}
	}
	return Origin{a.Origins[start].Start, a.Origins[end-1].End}
}

// Change is a character of a new text and its relation to the old one: 0 if it replaces a
// character, positive if it is inserted, -n if it replaces a character and the n after it.
type Change struct {
	Rune rune
	By   int
}

// transform returns the text that changes describe. An inserted character has the origin of the one
// before it.
func (a Aligned) transform(changes []Change) Aligned {
	var out Aligned
	at := 0
	for _, c := range changes {
		var from Origin
		switch {
		case c.By <= 0 && at < len(a.Origins):
			from = a.Origins[at]
		case at > 0:
			from = a.Origins[at-1]
		}
		for n := c.By; n <= 0 && at < len(a.Text); n++ {
			_, size := utf8.DecodeRune(a.Text[at:])
			at += size
		}
		out.add(utf8.AppendRune(nil, c.Rune), from)
	}
	return out
}

// chars applies f to each character, from which the result then comes.
func (a Aligned) chars(f func(dst []byte, r rune) []byte) Aligned {
	var out Aligned
	for i := 0; i < len(a.Text); {
		r, n := utf8.DecodeRune(a.Text[i:])
		out.add(f(nil, r), a.Origins[i])
		i += n
	}
	return out
}

// Prepend puts text before a unless a is empty; its origin is a's first character.
func (a Aligned) Prepend(text []byte) Aligned {
	if len(a.Text) == 0 {
		return a
	}
	var out Aligned
	out.add(text, a.Origins[0])
	out.Text, out.Origins = append(out.Text, a.Text...), append(out.Origins, a.Origins...)
	return out
}

// replace replaces each match of pattern with content, whose origin is the last byte of the match.
func (a Aligned) replace(pattern Pattern, content string) Aligned {
	var out Aligned
	done := 0
	keep := func(to int) {
		out.Text, out.Origins = append(out.Text, a.Text[done:to]...), append(out.Origins, a.Origins[done:to]...)
		done = to
	}
	Matches(pattern, a.Text, func(start, end int) {
		keep(start)
		var from Origin
		if end > 0 {
			from = a.Origins[end-1]
		}
		out.add([]byte(content), from)
		done = end
	})
	keep(len(a.Text))
	return out
}

// precompiled lists the changes of a character map: the characters of a replacement replace those
// of the part one by one, and the last makes up for the difference.
func precompiled(m *charsmap.Map, text []byte) []Change {
	var list []Change
	for part, to := range m.Parts(text) {
		from := len(list)
		for _, r := range string(to) {
			list = append(list, Change{r, 0})
		}
		switch diff := len(list) - from - utf8.RuneCount(part); {
		case diff > 0:
			for i := len(list) - diff; i < len(list); i++ {
				list[i].By = 1
			}
		case diff < 0 && len(list) > 0:
			list[len(list)-1].By += diff
		}
	}
	return list
}

// Align applies a component and tracks origins. ok is false for components that it cannot track.
func Align(c Component, a Aligned) (out Aligned, ok bool) {
	if len(a.Text) == 0 {
		return a, true
	}
	switch c := c.(type) {
	case interface{ Steps() Sequence }:
		ok = true
		for _, step := range c.Steps() {
			if ok {
				a, ok = Align(step, a)
			}
		}
		return a, ok
	case chars:
		return a.chars(c), true
	case form:
		var list []Change
		all := composer{form: c, changes: &list}
		all.all(a.Text)
		return a.transform(list), true
	case ByteLevel:
		return a.bytes(), true
	case Strip:
		left := len(Strip{Left: c.Left}.Append(nil, a.Text, &Edges{First: true, Last: true}))
		both := len(c.Append(nil, a.Text, &Edges{First: true, Last: true}))
		start := len(a.Text) - left
		return a.Slice(start, start+both), true
	case Replace:
		return a.replace(c.Pattern, c.Content), true
	case Prepend:
		return a.Prepend([]byte(c.Text)), true
	case Precompiled:
		return a.transform(precompiled(c.Map, a.Text)), true
	}
	return a, false
}

// bytes replaces each byte with its character in the byte-level alphabet.
func (a Aligned) bytes() Aligned {
	var out Aligned
	for i, b := range a.Text {
		out.add([]byte(charclass.ByteChar(b)), a.Origins[i])
	}
	return out
}

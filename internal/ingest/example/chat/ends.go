package chat

import (
	"bytes"
	"slices"
	"strings"
)

// compared finds the spans of turn i by the text whose last message it is.
func (f *finder) compared(dst []Span, i, start int) ([]Span, error) {
	if f.spent > f.allowed {
		return f.unlike(dst, i, start), nil
	}
	messages := slices.Clone(f.messages[:i+1])
	messages[i] = messages[i].Without(func(field string, _ any) bool { return slices.Contains(resultFields, field) })
	out, list, ok, err := f.marked(f.after, messages, false)
	f.after = out
	if err != nil {
		return dst, err
	}
	if f.first[i] < 0 {
		ending := ""
		if ok && bytes.HasPrefix(f.text, out) {
			ending = f.ending(string(out[min(start, len(out)):]))
		} else if err := f.findEnd(i); err != nil {
			return dst, err
		} else {
			rest := string(f.text[start:min(len(f.text), start+maxTagBytes+len(f.ends[plainEnd]))])
			ending = rest[:f.alike(f.ends[plainEnd], rest)]
		}
		return appendSpan(dst, start, start+len(ending), start+len(ending)), nil
	}
	if ok {
		if spans := f.aligned(dst, i, start, out, list); len(spans) > len(dst) {
			return spans, nil
		}
	}
	if err := f.findEnd(i); err != nil {
		return dst, err
	}
	return f.unlike(dst, i, start), nil
}

// aligned appends the spans of turn i from its start, comparing the text with that whose last
// message it is. What other messages wrote between its words is left out.
func (f *finder) aligned(dst []Span, i, start int, alone []byte, list []anchor) []Span {
	kept := len(dst)
	next, prev := f.first[i], -1 // in the text
	var before anchor            // prev in alone
	for _, x := range list {
		if !f.own(x, i) {
			continue
		}
		k := next
		for k <= f.last[i] && f.found[k].id != x.id {
			k++
		}
		if k > f.last[i] {
			continue // the text does not hold it once others follow
		}
		if prev >= 0 && slices.ContainsFunc(f.found[prev:k], func(x anchor) bool { return !f.own(x, i) }) {
			short, long := string(alone[before.pos:x.pos]), string(f.text[f.found[prev].pos:f.found[k].pos])
			if short != long {
				n := commonStart(short, long)
				dst = appendSpan(dst, start, f.found[prev].pos, f.found[prev].pos+n)
				start = f.found[k].pos - min(commonEnd(short, long), len(short)-n)
			}
		}
		prev, next, before = k, k+1, x
	}
	if prev < 0 || f.saysMore(i, prev, list) {
		return dst[:kept]
	}
	ending := f.ending(string(alone[before.pos:]))
	last := f.found[prev]
	f.ends[f.kind(last)] = ending
	return appendSpan(dst, start, last.pos, f.end(last, ending))
}

// saysMore reports whether the text holds words of turn i right after the anchor prev that the text
// whose last message it is does not hold.
func (f *finder) saysMore(i, prev int, list []anchor) bool {
	for k := prev + 1; k < len(f.found) && f.own(f.found[k], i); k++ {
		if !slices.ContainsFunc(list, func(x anchor) bool { return x.id == f.found[k].id }) {
			return true
		}
	}
	return false
}

// end returns where a turn ends whose last anchor is x, and that has the given ending if nothing
// follows it.
func (f *finder) end(x anchor, ending string) int {
	if f.follows(x, ending) {
		return x.pos + len(ending)
	}
	return x.pos + f.alike(ending, f.rest(x))
}

// alike returns how much of what follows the last words of a turn ends it, as ending does where nothing follows.
func (f *finder) alike(ending, rest string) int {
	n := commonStart(ending, rest)
	if n < len(ending) {
		if tag := firstTag(rest[n:]); tag != "" && firstTag(ending[n:]) != "" &&
			!strings.HasPrefix(f.header, tag) && f.endsOthers(tag) {
			n += len(tag) // such as <|end|> instead of <|return|>
		} else {
			n = beforeHeader(ending, rest, n)
		}
	}
	return n
}

// endsOthers reports whether a tag ends what others than the assistant say.
func (f *finder) endsOthers(tag string) bool {
	return known(f.others, tag, func() bool {
		return slices.ContainsFunc(f.found, func(x anchor) bool {
			return x.id&1 == 1 && get(f.messages[f.of(x).message], "role") != "assistant" && f.follows(x, tag)
		})
	})
}

var plainEnd = kind{kindOfText: kindOfText{"assistant", "content"}, end: true}

// findEnd finds what ends a turn in place of turn i that says something and calls no tools.
func (f *finder) findEnd(i int) error {
	if strings.TrimSpace(f.ends[plainEnd]) != "" {
		return nil
	}
	m := message("assistant", "."+string(f.append(nil, 1)))
	out, list, ok, err := f.anchoredText(f.after, append(slices.Clone(f.messages[:i]), m), false)
	if f.after = out; ok && len(list) > 0 {
		f.ends[plainEnd] = f.ending(string(out[list[len(list)-1].pos:]))
	}
	return err
}

// unlike appends the span of turn i, whose own end cannot be compared, up to where it ends like
// another turn.
func (f *finder) unlike(dst []Span, i, start int) []Span {
	if f.first[i] < 0 {
		return dst
	}
	last, _ := f.run(i)
	end, rest := last.pos, f.rest(last)
	for _, ending := range [...]string{f.ends[f.kind(last)], f.ends[plainEnd]} {
		ending = strings.TrimSpace(ending)
		for _, part := range parts(ending) {
			if at := strings.Index(rest, part); at >= 0 {
				end = last.pos + at + beforeHeader(ending, rest[at:], len(part))
				return appendSpan(dst, start, last.pos, end)
			}
		}
	}
	return appendSpan(dst, start, last.pos, end)
}

package chat

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/lazy"
)

// Reasoning says what becomes of a model's reasoning. It is in a field of its own, or in a content before what ends
// it, such as </think>, as the template itself would find it there.
type Reasoning string

// The values of Reasoning.
const (
	KeepReasoning Reasoning = "keep" // it stays where the template writes it
	MaskReasoning Reasoning = "mask" // the same text, without loss on it
	DropReasoning Reasoning = "drop" // the template does not see it
)

// Reasonings lists all values of Reasoning.
var Reasonings = []Reasoning{KeepReasoning, MaskReasoning, DropReasoning}

// endOfThought matches what ends reasoning in the source of a template.
var endOfThought = lazy.Regexp(`(?i)(</|\[/|<\|end_)[\w:]*(think|thought|reason)[\w:]*(>|\]|\|>)`)

// thoughtEnds returns what ends reasoning in a content, for a template of that source: what it writes itself, or
// what most models do.
func thoughtEnds(source string) []string {
	ends := append(endOfThought().FindAllString(source, -1), thoughtEnd)
	slices.Sort(ends)
	return slices.Compact(ends)
}

// afterThoughts returns where the words after reasoning begin in a text, 0 if there is none.
func (f *form) afterThoughts(text []byte) (at int) {
	for _, end := range f.thoughtEnds {
		if n := bytes.LastIndex(text, []byte(end)); n >= 0 {
			at = max(at, n+len(end))
		}
	}
	if at > 0 {
		at += len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n"))
	}
	return at
}

// dropReasoning returns a message of the assistant without its reasoning, and whether it had some.
func (j *rendering) dropReasoning(m *jinja.Dict) (_ *jinja.Dict, had bool, err error) {
	out := m.Without(func(key string, v any) bool { return v != nil && slices.Contains(reasoningFields, key) })
	had = out.Len() < m.Len()
	if content, thoughts := j.form.withoutThoughts(get(m, "content")); thoughts {
		out, had = with(out, "content", content), true
	}
	said := func(field string) bool { return has(out, field) }
	if had && blank(get(out, "content")) && !slices.ContainsFunc(saidFields, said) {
		return m, false, fault.Errorf("it says nothing besides its reasoning, which {reasoning} drop leaves out")
	}
	return out, had, nil
}

// withoutThoughts returns a content, or a part of one, without reasoning, nil for a part that is nothing else. had
// reports whether there was some.
func (f *form) withoutThoughts(content any) (_ any, had bool) {
	switch v := content.(type) {
	case string:
		n := f.afterThoughts([]byte(v))
		return v[n:], n > 0
	case *jinja.Dict:
		if kind := get(v, "type"); kind == "thinking" || kind == "reasoning" {
			return nil, true
		}
		text, had := f.withoutThoughts(get(v, "text"))
		if had {
			v = with(v, "text", text)
		}
		return v, had
	case *jinja.List:
		parts := &jinja.List{}
		for _, item := range v.Items {
			part, thoughts := f.withoutThoughts(item)
			if had = had || thoughts; !thoughts || !blank(part) {
				parts.Items = append(parts.Items, part)
			}
		}
		if had {
			return parts, true
		}
	}
	return content, false
}

// blank reports whether a content, or a part of one, is without words.
func blank(content any) bool {
	switch v := content.(type) {
	case string:
		return strings.TrimSpace(v) == ""
	case *jinja.Dict:
		return has(v, "text") && blank(get(v, "text"))
	case *jinja.List:
		return !slices.ContainsFunc(v.Items, func(part any) bool { return !blank(part) })
	}
	return content == nil
}

// maskReasoning takes the reasoning out of the spans.
func (j *rendering) maskReasoning(t *Text) error {
	fields, contents := false, false
	for _, m := range j.messages {
		if isAssistant(m) {
			fields = fields || has(m, "reasoning_content")
			contents = contents || slices.ContainsFunc(j.form.thoughtEnds, func(end string) bool {
				return says(get(m, "content"), end)
			})
		}
	}
	if fields {
		if j.first == nil {
			if err := j.findAnchors(t.Text); err != nil {
				return err
			}
		}
		for k := range j.found {
			j.maskThought(t, k)
		}
	}
	if contents {
		for _, s := range slices.Clone(t.Spans) {
			if n := j.form.afterThoughts(t.Text[s.Start:s.Said]); n > 0 {
				t.exclude(s.Start, s.Start+n)
			}
		}
	}
	return nil
}

// maskThought takes reasoning that begins at the k-th anchor out of the spans, with what stands around it: all that
// its turn begins with, or one tag, and the tag that ends it.
func (j *rendering) maskThought(t *Text, k int) {
	x := j.found[k]
	p := j.of(x)
	if x.id&1 == 1 || p.kind.role != "assistant" || !slices.Contains(reasoningFields, p.kind.key) {
		return
	}
	s := slices.IndexFunc(t.Spans, func(s Span) bool { return s.Start <= x.pos && x.pos < s.End })
	if s < 0 {
		return
	}
	from, to, limit := t.Spans[s].Start, x.pos, t.Spans[s].End
	for n, y := range j.found {
		thought := slices.Contains(reasoningFields, j.of(y).kind.key)
		switch {
		case !j.own(y, p.message):
		case n < k && y.pos >= from && !thought:
			from = max(y.pos, tagBefore(t.Text, x.pos))
		case n > k && thought:
			to = max(to, min(y.pos, limit))
		case n > k && y.pos >= to:
			limit = min(limit, y.pos)
		}
	}
	t.exclude(from, afterTag(t.Text, to, limit))
}

// tagBefore returns where the tag begins that ends at an offset, before white space; that offset if there is none.
func tagBefore(text []byte, at int) int {
	before := bytes.TrimRight(text[max(0, at-2*maxTagBytes):at], " \t\r\n")
	if n := len(before); n > 0 && closes(before[n-1]) {
		if tag := inTag(string(before[:n-1])); tag >= 0 {
			return at - min(at, 2*maxTagBytes) + tag
		}
	}
	return at
}

// afterTag returns where what follows a tag after an offset begins, no further than limit; the offset if no tag follows.
func afterTag(text []byte, at, limit int) int {
	next := bytes.TrimLeft(text[at:limit], " \t\r\n")
	tag := firstTag(string(next[:min(len(next), maxTagBytes)]))
	if tag == "" {
		return at
	}
	return limit - len(bytes.TrimLeft(next[len(tag):], " \t\r\n"))
}

// exclude takes a part of the text out of the spans.
func (t *Text) exclude(from, to int) {
	var spans []Span
	for _, s := range t.Spans {
		if to <= s.Start || from >= s.End {
			spans = append(spans, s)
			continue
		}
		if s.Start < from {
			spans = append(spans, Span{s.Start, min(s.Said, from), from})
		}
		if to < s.End {
			spans = append(spans, Span{to, max(s.Said, to), s.End})
		}
	}
	t.Spans = spans
}
